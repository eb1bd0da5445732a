package postgres

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// goldens are the kept copies of statements: each is held against the statement, or written with -update.
type goldens map[string]bool

// hold holds the copies of these statements of a specimen. A name that is kept and is no statement is a failure.
func (g goldens) hold(t *testing.T, prefix string, all map[string]statement, kept []string) {
	t.Helper()
	for _, name := range kept {
		st, ok := all[name]
		if !ok {
			t.Errorf("%s has no statement %s", prefix, name)
			continue
		}
		file := prefix + "." + name + ".sql"
		g[file] = true
		text := oid.ReplaceAllString(st.sql, "$1(<oid>)")
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		for i, a := range st.args {
			text += fmt.Sprintf("-- $%d: %s\n", i+1, a)
		}
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%v; review the statement and write it with -update", err)
			continue
		}
		if string(want) != text {
			t.Errorf("%s differs from %s; review it and write it with -update:\n%s", name, file, text)
		}
	}
}

// whole fails on a copy that is of no statement any more, of those that fit the pattern and are not another test's.
func (g goldens) whole(t *testing.T, pattern string, others *regexp.Regexp) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range slices.DeleteFunc(files, func(f string) bool { return g[f] || others != nil && others.MatchString(f) }) {
		if !*update {
			t.Errorf("%s is the copy of no statement", f)
			continue
		}
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
}
