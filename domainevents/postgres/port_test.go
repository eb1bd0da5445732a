package postgres

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The store records, claims, acknowledges, reopens and looks, and nothing else.
func TestTheStoreHasTheseMethodsAndNoOther(t *testing.T) {
	want := []string{"Cancel", "Claim", "Dead", "Fail", "Health", "Orphan", "Quiet", "Record", "Replay", "Requeue", "Succeed"}
	var got []string
	for m := range reflect.TypeFor[*Store]().Methods() {
		got = append(got, m.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("methods %q, want %q", got, want)
	}
}

// Neither a statement nor any other text of the package removes a row, and no name says so.
func TestNothingInTheStoreCanRemoveAnEvent(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var literals, names []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					literals = append(literals, s)
				}
			case *ast.Ident:
				names = append(names, n.Name)
			}
			return true
		})
	}
	texts := Statements("s")
	if n := reflect.TypeFor[statements]().NumField(); n != len(texts) {
		t.Errorf("%d statements are looked at, there are %d", len(texts), n)
	}
	inserts := 0
	for _, text := range texts {
		literals = append(literals, text)
		inserts += strings.Count(text, `INSERT INTO "s".`)
	}
	if inserts != 2 || !slices.Contains(names, "Record") {
		t.Errorf("%d inserts were looked at, want 2", inserts)
	}
	for _, text := range literals {
		if word := regexp.MustCompile(`(?i)\b(delete|truncate|drop|merge|alter)\b`).FindString(text); word != "" {
			t.Errorf("%s in %q", word, text)
		}
	}
	for _, name := range names {
		if word := regexp.MustCompile(`(?i)(delete|remove|prune|truncate|purge)`).FindString(name); word != "" {
			t.Errorf("%s says %s", name, word)
		}
	}
}
