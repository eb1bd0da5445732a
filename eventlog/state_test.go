package eventlog

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// Every constant of type State is in the declaration, in the same order.
func TestEveryStateIsDeclaredOnce(t *testing.T) {
	file := parse(t, "state.go")
	var constants []State
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "State" {
			for _, v := range spec.Values {
				s, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				constants = append(constants, State(s))
			}
		}
		return true
	})
	if len(constants) == 0 || !slices.Equal(constants, States()) {
		t.Errorf("constants %q, declared %q", constants, States())
	}
	for i, s := range States() {
		if slices.Contains(States()[:i], s) {
			t.Errorf("%s is declared twice", s)
		}
	}
}

func TestTheTerminalStatesAreThoseThatOweNothing(t *testing.T) {
	if want := []State{Completed, Failed, Cancelled}; !slices.Equal(Terminal(), want) {
		t.Errorf("terminal %q, want %q", Terminal(), want)
	}
	for _, s := range States() {
		if s.Terminal() != slices.Contains(Terminal(), s) {
			t.Errorf("%s.Terminal() is %t", s, s.Terminal())
		}
		if !s.Known() {
			t.Errorf("%s is not known", s)
		}
	}
	for _, s := range []State{"", "done", "Completed", "completed "} {
		if s.Terminal() || s.Known() {
			t.Errorf("%q is terminal %t, known %t; an unknown state protects", s, s.Terminal(), s.Known())
		}
	}
	States()[0], Terminal()[0] = "x", "x"
	if States()[0] != Queued || Terminal()[0] != Completed {
		t.Error("a caller can change the declaration")
	}
}

// The list in the package's documentation is the declaration.
func TestTheDocumentationListsTheDeclaredStates(t *testing.T) {
	file := parse(t, "doc.go")
	var listed []string
	for _, item := range regexp.MustCompile(`(?m)^\s+- (.+)$`).FindAllStringSubmatch(file.Doc.Text(), -1) {
		listed = append(listed, item[1])
	}
	var want []string
	for _, s := range States() {
		text := string(s)
		if s.Terminal() {
			text += " (terminal)"
		}
		want = append(want, text)
	}
	if !slices.Equal(listed, want) {
		t.Errorf("documented %q, declared %q", listed, want)
	}
}

func parse(t *testing.T, name string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
