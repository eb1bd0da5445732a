package inboxoutbox

import (
	"slices"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/surface"
)

// Nothing that the package exports says that it removes something.
func TestNothingHereRemovesARow(t *testing.T) {
	names, err := surface.Exported(".")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names, "Draft") {
		t.Fatalf("the names are not those of the package: %q", names)
	}
	for _, name := range names {
		if word := surface.Removes(name); word != "" || strings.Contains(strings.ToLower(name), "sweep") {
			t.Errorf("%s says that it removes", name)
		}
	}
}
