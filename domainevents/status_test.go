package domainevents

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// Every constant of type Status is in the declaration, in the same order, and every
// one of type Policy in Policies.
func TestEveryStatusAndPolicyIsDeclaredOnce(t *testing.T) {
	if got := constants(t, "status.go", "Status"); len(got) == 0 || !slices.Equal(got, words(Statuses())) {
		t.Errorf("constants %q, declared %q", got, Statuses())
	}
	if got := constants(t, "policy.go", "Policy"); len(got) == 0 || !slices.Equal(got, words(Policies())) {
		t.Errorf("constants %q, policies %q", got, Policies())
	}
	for i, s := range Statuses() {
		if slices.Contains(Statuses()[:i], s) {
			t.Errorf("%s is declared twice", s)
		}
	}
}

func TestTheSetsAreDerivedFromTheDeclaration(t *testing.T) {
	for name, c := range map[string]struct{ got, want []Status }{
		"terminal":     {Terminal(), []Status{Succeeded, Dead, Orphaned, Cancelled}},
		"owed":         {Owed(), []Status{Pending, Claimed, Failed}},
		"dead letters": {DeadLetters(), []Status{Dead, Orphaned}},
		"done":         {Done(), []Status{Succeeded, Cancelled}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
		c.got[0] = "x"
	}
	if Terminal()[0] != Succeeded || Owed()[0] != Pending {
		t.Error("a caller can change the declaration")
	}
	for _, s := range Statuses() {
		if s.Terminal() != slices.Contains(Terminal(), s) || s.Owed() == s.Terminal() || s.DeadLetter() != slices.Contains(DeadLetters(), s) || !s.Known() {
			t.Errorf("%s: terminal %t, owed %t, dead letter %t, known %t", s, s.Terminal(), s.Owed(), s.DeadLetter(), s.Known())
		}
	}
	for _, s := range []Status{"", "done", "Succeeded", "dead "} {
		if s.Terminal() || !s.Owed() || s.DeadLetter() || s.Known() {
			t.Errorf("%q is taken for known; an unknown status is owed", s)
		}
	}
	if Policy("LATER").Known() || Policy("").Known() || !PolicySettled.Known() {
		t.Error("the known policies are others")
	}
}

// The list in the package's documentation is the declaration.
func TestTheDocumentationListsTheDeclaredStatuses(t *testing.T) {
	var listed, want []string
	for _, item := range regexp.MustCompile(`(?m)^\s+- (.+)$`).FindAllStringSubmatch(parse(t, "doc.go").Doc.Text(), -1) {
		listed = append(listed, item[1])
	}
	for _, s := range Statuses() {
		text := string(s)
		switch {
		case s.DeadLetter():
			text += " (terminal, dead letter)"
		case s.Terminal():
			text += " (terminal)"
		}
		want = append(want, text)
	}
	if !slices.Equal(listed, want) {
		t.Errorf("documented %q, declared %q", listed, want)
	}
}

func words[T ~string](values []T) (all []string) {
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}

// constants are the values of the constants of a type in a file.
func constants(t *testing.T, file, of string) (all []string) {
	t.Helper()
	ast.Inspect(parse(t, file), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == of {
			for _, v := range spec.Values {
				s, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, s)
			}
		}
		return true
	})
	return all
}

func parse(t *testing.T, name string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
