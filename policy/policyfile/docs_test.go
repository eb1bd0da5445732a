package policyfile

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
)

func reference(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestReferenceHasEveryKey holds docs/policy.md against the table of keys: each key is named, each planned one among the
// planned, and each heading is a key.
func TestReferenceHasEveryKey(t *testing.T) {
	doc, plan, ok := strings.Cut(reference(t), "\n## Planned\n")
	if !ok {
		t.Fatal("the reference has no part Planned")
	}
	// Keys of a mapping that is planned itself need no mention of their own.
	inPlanned := func(k key) bool {
		for p := k.scope(); p != "" && p != "sweep"; p = (key{path: p}).scope() {
			if up, ok := lookup(p); ok && up.planned() {
				return true
			}
		}
		return false
	}
	for _, k := range keys {
		switch mention := "`" + k.String() + "`"; {
		case k.planned() && !inPlanned(k) && !strings.Contains(plan, mention):
			t.Errorf("%s is planned, and not among the planned", k)
		case !k.planned() && !strings.Contains(doc, mention):
			t.Errorf("%s is not in the reference", k)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^### `(.*)`$").FindAllStringSubmatch(doc, -1) {
		if k, ok := lookup("sweep." + m[1]); !ok || k.planned() {
			t.Errorf("the heading %s is no key of a sweep", m[1])
		}
	}
	for _, k := range scope("sweep") {
		if !k.planned() && !strings.Contains(doc, "\n### `"+k.name()+"`\n") {
			t.Errorf("%s has no heading", k)
		}
	}
	for _, kind := range append([]string{"due"}, ageKinds...) {
		if !strings.Contains(plan, "`"+kind+"`") {
			t.Errorf("%s is not among the planned", kind)
		}
	}
}

// TestReferenceDefaults holds the table of defaults against those of package policy.
func TestReferenceDefaults(t *testing.T) {
	doc := reference(t)
	s, b := policy.Sweep{}.WithDefaults(), policy.Budget{}.WithDefaults()
	count := func(n int) string {
		if n == policy.NoCeiling {
			return "none"
		}
		return fmt.Sprint(n)
	}
	for _, d := range []struct{ key, value string }{
		{"age.since", s.Since.Format(time.DateOnly)},
		{"floor", policy.FormatDuration(s.Floor)},
		{"batch.limit", count(s.Batch.Limit)},
		{"batch.target", policy.FormatDuration(s.Batch.Target)},
		{"ceiling.batches", count(s.Ceiling.Batches)},
		{"ceiling.rows", count(s.Ceiling.Rows)},
		{"ceiling.time", policy.FormatDuration(s.Ceiling.Time)},
		{"timeouts.statement", policy.FormatDuration(s.Timeouts.Statement)},
		{"timeouts.lock", policy.FormatDuration(s.Timeouts.Lock)},
		{"budget.time", policy.FormatDuration(b.Time)},
		{"budget.rows", count(b.Rows)},
		{"budget.turn", policy.FormatDuration(b.Turn)},
	} {
		if row := fmt.Sprintf("\n| `%s` | %s |\n", d.key, d.value); !strings.Contains(doc, row) {
			t.Errorf("the reference has no row%s", row)
		}
	}
}

// TestReferenceExamples parses every yaml block of the reference: a whole file, purges, or keys that are put into a sweep.
func TestReferenceExamples(t *testing.T) {
	shown := map[string]bool{}                               // keys that stand in an example
	place := regexp.MustCompile(`\.[0-9]+|^(purges)\.[^.]+`) // numbers of items, and the names of purges
	blocks := regexp.MustCompile("(?s)\n```yaml\n(.*?)```\n").FindAllStringSubmatch(reference(t), -1)
	if len(blocks) < 20 {
		t.Fatalf("only %d examples", len(blocks))
	}
	for _, b := range blocks {
		text := b[1]
		switch {
		case strings.HasPrefix(text, "purges:"):
			text = "version: 1\n" + text
		case !strings.HasPrefix(text, "version:"):
			text = inSweep(text)
		}
		f, err := Parse("policy.md", []byte(text))
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			continue
		}
		for p := range f.places {
			shown[place.ReplaceAllString(p.key, "$1")] = true
		}
	}
	for _, k := range keys {
		if !k.planned() && !shown[k.String()] {
			t.Errorf("%s stands in no example", k)
		}
	}
}

// inSweep puts keys into a sweep, in place of those that stand there.
func inSweep(fragment string) string {
	lines := []string{"version: 1", "sweeps:", "  jobs:"}
	for _, have := range []string{"table: public.jobs", "age: finished_at", "window: 90d", "guard: {ended: true}"} {
		name, _, _ := strings.Cut(have, ":")
		if slices.Contains(inPlaceOf["sweep.expires"], name) && strings.Contains("\n"+fragment, "\nexpires:") {
			continue
		}
		if !slices.ContainsFunc(strings.Split(fragment, "\n"), func(l string) bool { return strings.HasPrefix(l, name+":") }) {
			lines = append(lines, "    "+have)
		}
	}
	for _, l := range strings.Split(strings.TrimRight(fragment, "\n"), "\n") {
		lines = append(lines, "    "+l)
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestExamplesOfTheTable: the example that a message gives for a key is accepted, in its place.
func TestExamplesOfTheTable(t *testing.T) {
	for _, k := range keys {
		if k.planned() || strings.Contains(k.example, "...") || !strings.HasPrefix(k.path, "sweep.") {
			continue
		}
		fragment := k.name() + ": " + k.example
		switch k.scope() {
		case "sweep":
		case "sweep.guard":
			if in := k.name(); in != "none" && in != "ended" {
				fragment = "guard: {state: s, terminal: [done], final: true, " + fragment + "}"
				fragment = strings.Replace(fragment, map[string]string{"state": "state: s, ", "terminal": "terminal: [done], ", "final": "final: true, "}[in], "", 1)
				fragment = strings.Replace(fragment, ", }", "}", 1)
			} else {
				fragment = "guard: {" + fragment + "}"
			}
		case "sweep.guard.owner":
			fragment = "guard: {owner: {" + among("table: a.b, key: {x: y}, state: s, terminal: [done]", k, fragment) + "}}"
		case "sweep.guard.owed":
			fragment = "guard: {owed: {" + among("table: a.b, key: {x: y}, state: s, terminal: [done]", k, fragment) + "}}"
		case "sweep.row_window":
			fragment = "row_window: {" + among("column: s", k, fragment) + "}"
		case "sweep.children":
			fragment = "children: [{" + among("table: a.b, key: {x: y}", k, fragment) + "}]"
		case "sweep.age", "sweep.expires":
			fragment = strings.TrimPrefix(k.scope(), "sweep.") + ": {" + among("column: at", k, fragment) + "}"
		default:
			fragment = strings.TrimPrefix(k.scope(), "sweep.") + ": {" + fragment + "}"
		}
		text := inSweep(fragment)
		if k.path == "sweep.overlaps" {
			text = strings.Replace(text, "sweeps:\n", "sweeps:\n  old_jobs: {table: public.jobs, age: a, window: 9d, guard: {ended: true}}\n", 1)
		}
		if _, err := Parse("keys.go", []byte(text)); err != nil {
			t.Errorf("%s: %v\n%s", k, err, text)
		}
	}
}

// TestExamplesOfPurgesInTheTable: the same of the keys of a purge.
func TestExamplesOfPurgesInTheTable(t *testing.T) {
	const below = "table: a.b, key: {x: y}"
	seen := 0
	for _, k := range scope("purges") {
		for _, k := range append([]key{k}, append(scope(k.path), scope(k.path+".children")...)...) {
			seen++
			fragment := k.name() + ": " + k.example
			switch k.scope() {
			case "purges":
			case "purges.tables":
				fragment = "tables: [{" + among("table: public.jobs", k, fragment) + "}]"
			case "purges.tables.children":
				fragment = "tables: [{table: public.jobs, children: [{" + among(below, k, fragment) + "}]}]"
			default:
				fragment = strings.TrimPrefix(k.scope(), "purges.") + ": {" + fragment + "}"
			}
			if others := "key: id, tables: [{table: public.jobs}]"; !strings.HasPrefix(fragment, "tables:") {
				fragment = among(others, k, fragment)
			} else {
				fragment = "key: id, " + fragment
			}
			text := "version: 1\npurges: {tenant: {" + fragment + "}}\n"
			if _, err := Parse("keys.go", []byte(text)); err != nil {
				t.Errorf("%s: %v\n%s", k, err, text)
			}
		}
	}
	if seen != 17 {
		t.Errorf("%d keys", seen)
	}
}

// among puts a fragment among other keys, in place of the one that is the same.
func among(others string, k key, fragment string) string {
	parts := []string{fragment}
	for _, part := range strings.Split(others, ", ") {
		if !strings.HasPrefix(part, k.name()+":") {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}
