package postgres

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/surface"
)

// The store records, claims, acknowledges, reopens and looks, and nothing else.
func TestTheStoreHasTheseMethodsAndNoOther(t *testing.T) {
	want := []string{"Cancel", "Claim", "Dead", "Fail", "Health", "Orphan", "Quiet", "Record", "Replay", "Requeue", "Succeed"}
	if got := surface.Methods(reflect.TypeFor[*Store]()); !slices.Equal(got, want) {
		t.Errorf("methods %q, want %q", got, want)
	}
}

// Neither a statement nor any other text of the package removes a row, and no name says so.
func TestNothingInTheStoreCanRemoveAnEvent(t *testing.T) {
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
		if word := surface.Removes(name); word != "" {
			t.Errorf("%s says %s", name, word)
		}
	}
}
