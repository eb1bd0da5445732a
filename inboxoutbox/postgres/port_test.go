package postgres

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/surface"
)

// The store receives and completes, adds, claims and acknowledges, leases and looks, and nothing else.
func TestTheStoreHasTheseMethodsAndNoOther(t *testing.T) {
	want := []string{"Acquire", "Add", "Claim", "Complete", "Deliver", "Health", "Receive", "Release", "Renew", "Retry", "Return"}
	if got := surface.Methods(reflect.TypeFor[*Store]()); !slices.Equal(got, want) {
		t.Errorf("methods %q, want %q", got, want)
	}
}

// Of all texts of the package one removes a row: the lease that is given back. No name says that something is removed.
func TestNothingInTheStoreRemovesARowButALease(t *testing.T) {
	literals, err := surface.Literals(".")
	if err != nil {
		t.Fatal(err)
	}
	names, err := surface.Identifiers(".")
	if err != nil {
		t.Fatal(err)
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
		if word := surface.Removes(name); word != "" {
			t.Errorf("%s says %s", name, word)
		}
	}
}
