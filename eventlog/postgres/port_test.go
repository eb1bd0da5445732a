package postgres

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/eventlog"
	"github.com/prunectl/prunectl/internal/surface"
)

// The adapter has the port's methods, the one that puts it in a transaction, and
// nothing else.
func TestTheAdapterOffersThePortAndATransaction(t *testing.T) {
	allowed := map[string]bool{"In": true}
	for _, name := range surface.Methods(reflect.TypeFor[eventlog.Log]()) {
		allowed[name] = true
	}
	got := surface.Methods(reflect.TypeFor[*Log]())
	if len(got) != len(allowed) {
		t.Errorf("methods %q", got)
	}
	for _, name := range got {
		if !allowed[name] {
			t.Errorf("the adapter has %s, which the port has not", name)
		}
	}
}

func TestNothingInTheAdapterCanRemoveAnEvent(t *testing.T) {
	names, err := surface.Exported(".")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(names, " "), "Log.Append") {
		t.Fatalf("the names are not those of the package: %q", names)
	}
	for _, name := range names {
		if word := surface.Removes(name); word != "" {
			t.Errorf("%s says %s", name, word)
		}
	}

	literals, err := surface.Literals(".")
	if err != nil {
		t.Fatal(err)
	}
	texts := reflect.ValueOf(render("s"))
	for i := range texts.NumField() {
		literals = append(literals, texts.Field(i).String())
	}
	insert := 0
	for _, text := range literals {
		for _, word := range []string{"DELETE", "TRUNCATE", "DROP", "MERGE", "ALTER"} {
			if regexp.MustCompile(`(?i)\b` + word + `\b`).MatchString(text) {
				t.Errorf("%s in %q", word, text)
			}
		}
		if strings.Contains(text, `INSERT INTO "s"."run_events"`) {
			insert++
		}
		for _, m := range regexp.MustCompile(`(?i)\bUPDATE\s+("\w+"\."\w+")`).FindAllStringSubmatch(text, -1) {
			if m[1] != `"s"."runs"` {
				t.Errorf("changes %s in %q", m[1], text)
			}
		}
	}
	if insert != 1 {
		t.Errorf("%d statements that append were looked at, want 1", insert)
	}
}
