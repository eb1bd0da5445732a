package inboxoutbox

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// Nothing that the package exports says that it removes something.
func TestNothingHereRemovesARow(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.IsExported() {
				names = append(names, id.Name)
			}
			return true
		})
	}
	if !strings.Contains(strings.Join(names, " "), "Draft") {
		t.Fatalf("the names are not those of the package: %q", names)
	}
	for _, name := range names {
		for _, word := range []string{"delete", "remove", "prune", "truncate", "purge", "sweep"} {
			if strings.Contains(strings.ToLower(name), word) {
				t.Errorf("%s says %s", name, word)
			}
		}
	}
}
