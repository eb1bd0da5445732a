package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/bench/internal/study"
	"github.com/prunectl/prunectl/bench/internal/workload"
)

// TestUsage: a command line that is wrong starts nothing.
func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-no-such-flag"}, {"short"}, {"-short", "more"}, {"-only", "curves,no-such-part"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); !errors.As(err, new(usageError)) {
			t.Errorf("%q: %v; want an error of usage", args, err)
		}
	}
	if err := run(t.Context(), []string{"-h"}, io.Discard, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"-out", file}, io.Discard, io.Discard); err == nil {
		t.Error("a file is taken for a folder")
	}
	if got := command(true, "idle,first", true); got != "go run ./bench -short -only idle,first -dsn ..." {
		t.Errorf("the command is shown as %q", got)
	}
}

// TestDoc holds that the document knows every flag and every subject.
func TestDoc(t *testing.T) {
	doc, err := os.ReadFile("../docs/bench.md")
	if err != nil {
		t.Fatal(err)
	}
	var help strings.Builder
	_ = run(t.Context(), []string{"-h"}, io.Discard, &help)
	want := regexp.MustCompile(`(?m)^  -\w+`).FindAllString(help.String(), -1)
	if len(want) < 3 {
		t.Fatalf("the flags are %q", want)
	}
	for i := range want {
		want[i] = "`" + strings.TrimSpace(want[i])
	}
	b := &study.Bench{Size: study.Full()}
	for _, subjects := range [][]workload.Subject{b.Subjects(), b.JobSubjects(), b.DomainSubjects(), b.DomainShapes()} {
		for _, s := range subjects {
			want = append(want, s.Name)
		}
	}
	for _, part := range study.Parts() {
		want = append(want, "`"+part+"`")
	}
	for _, w := range want {
		if !strings.Contains(string(doc), w) {
			t.Errorf("docs/bench.md does not have %q", w)
		}
	}
}
