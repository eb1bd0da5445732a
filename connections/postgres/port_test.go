package postgres

import (
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/prunectl/prunectl/internal/surface"
)

// The store creates, finds, changes, revokes and purges, and nothing else.
func TestTheStoreHasTheseMethodsAndNoOther(t *testing.T) {
	want := []string{"Create", "Get", "List", "Purge", "Revoke", "Update"}
	if got := surface.Methods(reflect.TypeFor[*Store]()); !slices.Equal(got, want) {
		t.Errorf("methods %q, want %q", got, want)
	}
}

// Every statement on the table is bound to one tenant, and no text of the package removes a row: a purge is the engine's.
func TestEachStatementIsOfOneTenant(t *testing.T) {
	texts := Statements("s")
	if n := reflect.TypeFor[statements]().NumField(); n != len(texts) {
		t.Errorf("%d statements are looked at, there are %d", len(texts), n)
	}
	table, tenant := regexp.MustCompile(`"s"\."connections" AS c`), regexp.MustCompile(`WHERE c\.tenant_id = \$1::text\n`)
	removes := regexp.MustCompile(`(?i)\b(delete from|truncate|drop|merge|alter)\b`)
	for name, text := range texts {
		reads, bound := len(table.FindAllString(text, -1)), len(tenant.FindAllString(text, -1))
		if name == "create" {
			bound++ // it writes the one that it is given
		}
		if reads != bound || reads == 0 && name != "settings" {
			t.Errorf("%s is on the table %d times, and bound to a tenant %d times", name, reads, bound)
		}
	}
	literals, err := surface.Literals(".")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(literals, "tenant_id") {
		t.Fatal("these are not the texts of the package")
	}
	for _, text := range literals {
		if found := removes.FindString(text); found != "" {
			t.Errorf("%q in %s", found, text)
		}
	}
}
