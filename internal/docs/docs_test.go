// Package docs holds what the documents at the root claim: each promise of SPEC.md to the test that it names, the README's
// code and screens to the program.
package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	promise = regexp.MustCompile(`^\*\*R(\d+)\.\*\* `)
	proof   = regexp.MustCompile("`([a-z/_]+):(Test\\w+|Fuzz\\w+)((?:/[^`]+)?)`")
)

// TestSpec fails on a promise without a test, a test that does not exist, and a number that is missing or used twice.
func TestSpec(t *testing.T) {
	if ps := specProblems(read(t, "../../SPEC.md"), "../.."); len(ps) > 0 {
		t.Error(strings.Join(ps, "\n"))
	}
}

// TestSpecBites proves TestSpec.
func TestSpecBites(t *testing.T) {
	for name, text := range map[string]string{
		"no test":      "**R1.** It is good.\n",
		"unknown test": "**R1.** It is good. `internal/docs:TestNothing`\n",
		"a gap":        "**R2.** It is good. `internal/docs:TestSpec`\n",
		"twice":        "**R1.** It is good. `internal/docs:TestSpec`\n\n**R1.** It is good. `internal/docs:TestSpec`\n",
		"none":         "# Spec\n",
	} {
		if len(specProblems(text, "../..")) == 0 {
			t.Errorf("%s: no problem was found in %q", name, text)
		}
	}
	if ps := specProblems("**R1.** It is\ngood. `internal/docs:TestSpec`\n", "../.."); len(ps) > 0 {
		t.Errorf("problems in a right promise: %v", ps)
	}
}

func specProblems(text, root string) []string {
	var ps []string
	tests := map[string]map[string]bool{}
	next := 1
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		m := promise.FindStringSubmatch(paragraph)
		if m == nil {
			continue
		}
		if m[1] != fmt.Sprint(next) {
			ps = append(ps, fmt.Sprintf("R%s stands where R%d is due", m[1], next))
		}
		next++
		proofs := proof.FindAllStringSubmatch(paragraph, -1)
		if len(proofs) == 0 {
			ps = append(ps, fmt.Sprintf("R%s names no test", m[1]))
		}
		for _, p := range proofs {
			if tests[p[1]] == nil {
				tests[p[1]] = testsOf(filepath.Join(root, p[1]))
			}
			if !tests[p[1]][p[2]] {
				ps = append(ps, fmt.Sprintf("R%s names %s of %s, which does not exist", m[1], p[2], p[1]))
			}
		}
	}
	if next == 1 {
		ps = append(ps, "there is no promise")
	}
	return ps
}

// testsOf lists the test functions of a folder.
func testsOf(dir string) map[string]bool {
	found := map[string]bool{}
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				found[fn.Name.Name] = true
			}
		}
	}
	return found
}

// TestLinks fails on a link of a document at the root to a file that is not there.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	for _, name := range []string{"README.md", "SPEC.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		for _, m := range link.FindAllStringSubmatch(read(t, "../../"+name), -1) {
			if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
		}
	}
}
