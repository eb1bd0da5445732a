package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the module's folder.
var root = filepath.Join("..", "..")

// pkg is what `go list` says of a package.
type pkg struct {
	ImportPath string
	Dir        string
	Standard   bool
	GoFiles    []string
	Imports    []string
}

// tree is all that the module's packages import, by import path.
type tree map[string]pkg

func TestImports(t *testing.T) {
	for _, v := range violations(load(t)) {
		t.Error(v)
	}
}

// Each rule, broken on purpose, must be seen.
func TestRulesBite(t *testing.T) {
	whole := load(t)
	for _, c := range []struct {
		in, gets, says string
	}{
		{"policy", "github.com/jackc/pgx/v5", "policy may not import github.com/jackc/pgx/v5"},
		{"policy", "os", "policy is pure"},
		{"policy", "math/rand/v2", "policy is pure"},
		{"policy", self + "/pruner", "policy may not import pruner"},
		{"policy/policyfile", self + "/pruner", "policy/policyfile may not import pruner"},
		{"pruner", self + "/drain", "pruner may not import drain"},
		{"pruner", "github.com/goccy/go-yaml", "pruner may not import github.com/goccy/go-yaml"},
		{"pruner/memory", "github.com/jackc/pgx/v5", "pruner/memory may not import"},
		{"pruner/postgres", "github.com/goccy/go-yaml", "pruner/postgres brings github.com/goccy/go-yaml"},
		{"drain", self + "/pruner/postgres", "drain may not import pruner/postgres"},
		{"pruner", "github.com/goccy/go-yaml", "drain brings github.com/goccy/go-yaml"},
		{"explaintest", "github.com/jackc/pgx/v5", "explaintest may not import github.com/jackc/pgx/v5"},
		{"explaintest", self + "/explaintest/pgxplan", "explaintest may not import explaintest/pgxplan"},
		{"explaintest", "github.com/goccy/go-yaml", "explaintest/pgxplan brings github.com/goccy/go-yaml"},
		{"explaintest/pgxplan", self + "/internal/pgtest", "explaintest/pgxplan may not import internal/pgtest"},
		{"eventlog", self + "/pruner", "eventlog may not import pruner"},
		{"migrations", embedded, "migrations may not import " + embedded},
		{"bench", self + "/internal/pgtest", "bench may not import internal/pgtest"},
		{"cmd/prunectl", self + "/internal/pgtest", "cmd/prunectl links internal/pgtest"},
		{"policy", "github.com/docker/docker/client", "cmd/prunectl links github.com/docker/docker/client"},
		{"new", "fmt", "new has no line"},
	} {
		t.Run(c.says, func(t *testing.T) {
			broken := tree{}
			for path, p := range whole {
				broken[path] = p
			}
			p := broken[full(c.in)]
			p.ImportPath = full(c.in)
			p.Imports = append(slices.Clone(p.Imports), c.gets)
			broken[p.ImportPath] = p
			if _, ok := broken[c.gets]; !ok {
				broken[c.gets] = pkg{ImportPath: c.gets}
			}
			for _, v := range violations(broken) {
				if strings.Contains(v, c.says) {
					return
				}
			}
			t.Errorf("%s imports %s: not seen", c.in, c.gets)
		})
	}
	for _, r := range required {
		less := tree{}
		for path, p := range whole {
			if path != full(r) {
				less[path] = p
			}
		}
		if !slices.Contains(violations(less), r+" is not there") {
			t.Errorf("the loss of %s is not seen", r)
		}
	}
}

func TestModules(t *testing.T) {
	var mod struct{ Require []struct{ Path string } }
	if err := json.Unmarshal(goTool(t, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	if len(mod.Require) == 0 {
		t.Fatal("go.mod requires nothing")
	}
	for _, r := range mod.Require {
		if matchesAny(mustNotRequire, r.Path) {
			t.Errorf("go.mod requires %s: what needs it belongs into a module of its own", r.Path)
		}
	}
}

// What decides is told the time.
func TestClocks(t *testing.T) {
	whole := load(t)
	for _, name := range clockless {
		p := whole[full(name)]
		for _, file := range p.GoFiles {
			for _, call := range clocksIn(t, filepath.Join(p.Dir, file), nil) {
				t.Errorf("%s/%s calls time.%s", name, file, call)
			}
		}
	}
	src := "package p\nimport \"time\"\nvar d = time.Second\nvar n = time.Now()\nvar f = time.After\n"
	if got := clocksIn(t, "p.go", src); !slices.Equal(got, []string{"Now", "After"}) {
		t.Errorf("in a file with two clocks: %q", got)
	}
}

// violations checks a tree against all rules.
func violations(all tree) (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, name := range required {
		if _, ok := all[full(name)]; !ok {
			add("%s is not there", name)
		}
	}
	for path, p := range all {
		name, ours := short(path)
		if !ours {
			continue
		}
		i := slices.IndexFunc(mayImport, func(r struct {
			pkg     string
			imports []string
		}) bool {
			return matches(full(r.pkg), path)
		})
		if i < 0 {
			if len(p.Imports) > 0 { // else it has tests alone
				add("%s has no line in the table of who may import what", name)
			}
			continue
		}
		for _, im := range p.Imports {
			if imp, known := all[im]; (known && imp.Standard) || im == "C" {
				continue
			}
			if !slices.ContainsFunc(mayImport[i].imports, func(pattern string) bool { return matches(full(pattern), im) }) {
				s, _ := short(im)
				add("%s may not import %s", name, s)
			}
		}
		if slices.Contains(pure, name) {
			for _, im := range p.Imports {
				if matchesAny(impureImports, im) {
					add("%s is pure and may not import %s", name, im)
				}
			}
		}
	}
	for _, name := range light {
		driver := closure(all, func(path string) bool { return matches(pgx, path) })
		for path := range closure(all, func(path string) bool { return path == full(name) }) {
			if _, ours := short(path); !ours && !all[path].Standard && !driver[path] {
				add("%s brings %s, which is neither pgx nor the standard library", name, path)
			}
		}
	}
	for path := range closure(all, func(path string) bool { return path == full(command) }) {
		for _, pattern := range mustNotLink {
			if matches(full(pattern), path) {
				s, _ := short(path)
				add("%s links %s", command, s)
			}
		}
	}
	slices.Sort(out)
	return out
}

// closure is all that the chosen packages import, directly or not, and they
// themselves.
func closure(all tree, chosen func(path string) bool) map[string]bool {
	seen := map[string]bool{}
	var visit func(path string)
	visit = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		for _, im := range all[path].Imports {
			visit(im)
		}
	}
	for path := range all {
		if chosen(path) {
			visit(path)
		}
	}
	return seen
}

func full(pattern string) string {
	first, _, _ := strings.Cut(pattern, "/")
	switch {
	case pattern == "...":
		return self + "/..."
	case strings.Contains(first, "."):
		return pattern
	}
	return self + "/" + pattern
}

// short is the name that our tables have for a package of ours.
func short(path string) (name string, ours bool) {
	if path == self {
		return ".", true
	}
	name, ours = strings.CutPrefix(path, self+"/")
	return name, ours
}

func matches(pattern, path string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == base || strings.HasPrefix(path, base+"/")
	}
	return path == pattern
}

func matchesAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, path) })
}

func clocksIn(t *testing.T, name string, src any) (calls []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clockCalls, s.Sel.Name) {
				calls = append(calls, s.Sel.Name)
			}
		}
		return true
	})
	return calls
}

func load(t *testing.T) tree {
	t.Helper()
	// What the go tool reads is unknown to the cache of test results; what is
	// looked at here is not, so a changed tree is a new test.
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Base(path) == ".git" {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all := tree{}
	dec := json.NewDecoder(bytes.NewReader(goTool(t, "list", "-deps", "-json=ImportPath,Dir,Standard,GoFiles,Imports", "./...")))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
}

// goTool runs go at the module's root.
func goTool(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v: %s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}
