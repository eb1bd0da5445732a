package eventlog_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/eventlog"
	"github.com/prunectl/prunectl/internal/surface"
)

// The port can append, list and tell the latest sequence, and nothing else.
func TestThePortAppendsListsAndTellsTheLatestSequence(t *testing.T) {
	got := surface.Methods(reflect.TypeFor[eventlog.Log]())
	want := map[string]bool{"Append": true, "ListAfter": true, "LatestSequence": true}
	for _, name := range got {
		if !want[name] {
			t.Errorf("the port has %s, which is not one of its three", name)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("the port has no %s", name)
	}
}

func TestNothingInThePortCanRemoveAnEvent(t *testing.T) {
	names, err := surface.Exported(".")
	if err != nil {
		t.Fatal(err)
	}
	names = append(names, surface.Methods(reflect.TypeFor[eventlog.Log]())...)
	if !strings.Contains(strings.Join(names, " "), "Log.Append") {
		t.Fatalf("the names are not those of the package: %q", names)
	}
	for _, name := range names {
		if word := surface.Removes(name); word != "" {
			t.Errorf("%s says %s", name, word)
		}
	}
}

// Whoever only needs the port gets no driver with it.
func TestThePortImportsNoDriver(t *testing.T) {
	imports, err := surface.Imports(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(imports) == 0 {
		t.Fatal("no imports found")
	}
	for _, path := range imports {
		first, _, _ := strings.Cut(filepath.ToSlash(path), "/")
		if strings.Contains(first, ".") && !strings.HasPrefix(path, "github.com/prunectl/prunectl/policy") {
			t.Errorf("imports %s", path)
		}
	}
}
