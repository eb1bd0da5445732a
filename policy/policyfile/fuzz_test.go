package policyfile_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prunectl/prunectl/policy/policyfile"
)

// FuzzParse: whatever the bytes, there is an answer; each fault is one line at a place inside the file, in the order of
// the file; and what is accepted has no problems left.
func FuzzParse(f *testing.F) {
	for _, c := range slices.Concat(refused, refusedParents, refusedExpiries) {
		if len(c.file) < 1<<16 {
			f.Add([]byte(c.file))
		}
	}
	f.Add([]byte(full))
	f.Add([]byte(fullParents))
	f.Add([]byte(fullExpiries))
	for _, name := range []string{"systems.yaml", "systems_planned.yaml"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		hangs := time.AfterFunc(10*time.Second, func() { panic(fmt.Sprintf("no answer for %q", data)) })
		defer hangs.Stop()
		file, err := policyfile.Parse("p.yaml", data)
		if err == nil {
			if len(file.Sweeps) == 0 {
				t.Error("accepted without a sweep")
			}
			for _, s := range file.Sweeps {
				if ps := s.Problems(); len(ps) > 0 {
					t.Errorf("sweep %q was accepted with problems: %v", s.Name, ps)
				}
			}
			return
		}
		var errs policyfile.Errors
		if !errors.As(err, &errs) || len(errs) == 0 {
			t.Fatalf("a %T: %v", err, err)
		}
		lines := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
		for i, e := range errs {
			if e.Line < 1 || e.Line > len(lines) {
				t.Fatalf("%v: line %d of %d", e, e.Line, len(lines))
			}
			if e.Column < 1 || e.Column > utf8.RuneCountInString(lines[e.Line-1])+1 {
				t.Errorf("%v: column %d of %q", e, e.Column, lines[e.Line-1])
			}
			if i > 0 && (errs[i-1].Line > e.Line || errs[i-1].Line == e.Line && errs[i-1].Column > e.Column) {
				t.Errorf("%v stands behind %v", e, errs[i-1])
			}
			if e.Message == "" || strings.ContainsFunc(e.Error(), unicode.IsControl) {
				t.Errorf("not one printable line: %q", e.Error())
			}
		}
	})
}
