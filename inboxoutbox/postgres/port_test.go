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

// The store receives and completes, adds, claims and acknowledges, leases and looks, and nothing else.
func TestTheStoreHasTheseMethodsAndNoOther(t *testing.T) {
	want := []string{"Acquire", "Add", "Claim", "Complete", "Deliver", "Health", "Receive", "Release", "Renew", "Retry", "Return"}
	var got []string
	for m := range reflect.TypeFor[*Store]().Methods() {
		got = append(got, m.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("methods %q, want %q", got, want)
	}
}

// Of all texts of the package one removes a row: the lease that is given back. No name says that something is removed.
func TestNothingInTheStoreRemovesARowButALease(t *testing.T) {
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
	removes := regexp.MustCompile(`(?i)\b(delete|truncate|drop|merge|alter)\b`)
	for name, text := range texts {
		found := removes.FindAllString(text, -1)
		if name == "give back" {
			if !slices.Equal(found, []string{"DELETE"}) || !strings.Contains(text, `DELETE FROM "s"."leases" AS l
 WHERE l.handler = $1::text
   AND l.partition = $2::text
   AND l.token::text = $3::text`) {
				t.Errorf("a lease is given back by\n%s", text)
			}
		} else if found != nil {
			t.Errorf("%q in %s", found, name)
		}
	}
	if !slices.Contains(names, "Receive") {
		t.Errorf("the names are not those of the package: %q", names)
	}
	deletes := 0
	for _, text := range literals {
		deletes += len(removes.FindAllString(text, -1))
	}
	if deletes != 1 {
		t.Errorf("%d texts of the source remove something, want the one", deletes)
	}
	for _, name := range names {
		if word := regexp.MustCompile(`(?i)(delete|remove|prune|truncate|purge)`).FindString(name); word != "" {
			t.Errorf("%s says %s", name, word)
		}
	}
}
