package policyfile_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prunectl/prunectl/policy/policyfile"
)

// FuzzParse: whatever the bytes, there is an answer, and always the same; each fault is one line at a place inside the file,
// in the order of the file; what is accepted has no problems left, knows where its keys stand, and means the same with
// other ends of lines and a comment behind it.
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
		if again, e := policyfile.Parse("p.yaml", data); !reflect.DeepEqual(again, file) || !reflect.DeepEqual(e, err) {
			t.Fatalf("it reads as %+v, %v, and then as %+v, %v", file, err, again, e)
		}
		if err == nil {
			accepted(t, file, data)
			return
		}
		if file != nil {
			t.Errorf("a file beside an error: %+v", file)
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
			if e.Message == "" || strings.ContainsFunc(e.Error(), unicode.IsControl) || !strings.HasPrefix(e.Error(), fmt.Sprintf("p.yaml:%d:%d: ", e.Line, e.Column)) {
				t.Errorf("not one printable line that starts with the place: %q", e.Error())
			}
		}
		if !bytes.ContainsRune(data, '\r') {
			if _, e := policyfile.Parse("p.yaml", bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))); len(data) < 1<<16 && !reflect.DeepEqual(e, err) {
				t.Errorf("with carriage returns the faults are\n%v\nand not\n%v", e, err)
			}
		}
	})
}

// accepted holds an accepted file to what is said of one.
func accepted(t *testing.T, file *policyfile.File, data []byte) {
	t.Helper()
	if sum := sha256.Sum256(data); file.SHA256 != hex.EncodeToString(sum[:]) || file.Path != "p.yaml" {
		t.Errorf("%s has the sum %s", file.Path, file.SHA256)
	}
	if len(file.Sweeps) == 0 {
		t.Error("accepted without a sweep")
	}
	lines := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	for _, s := range file.Sweeps {
		if ps := s.Problems(); len(ps) > 0 {
			t.Errorf("sweep %q was accepted with problems: %v", s.Name, ps)
		}
		for _, key := range []string{"", "table", "window", "guard.owner.terminal", "guard.none", "children.0.key", "no.such", "."} {
			for _, at := range []string{file.Position(s.Name, key), file.KeyPosition(s.Name, key)} {
				var line, column int
				if _, err := fmt.Sscanf(at, "p.yaml:%d:%d", &line, &column); err != nil || line < 1 || line > len(lines) || column < 1 || column > utf8.RuneCountInString(lines[line-1])+1 {
					t.Errorf("key %q of %s stands at %s of %d lines, %v", key, s.Name, at, len(lines), err)
				}
			}
		}
	}
	plain := strings.Join(lines, "\n")
	for name, same := range map[string]string{"carriage returns": strings.ReplaceAll(plain, "\n", "\r\n"), "a comment behind it": plain + "\n# the end\n"} {
		if len(same) >= 1<<18 {
			continue // the longest file that is read
		}
		got, err := policyfile.Parse("p.yaml", []byte(same))
		if err != nil || !reflect.DeepEqual(got.Sweeps, file.Sweeps) || got.Budget != file.Budget {
			t.Errorf("with %s it reads as %+v, %v; not as %+v", name, got, err, file)
		}
	}
}
