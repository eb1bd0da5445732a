package explaintest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/explaintest"
	"github.com/prunectl/prunectl/explaintest/internal/plancases"
)

// majors are the versions of PostgreSQL whose plans are in testdata.
var majors = []string{"14", "15", "16", "17", "18"}

func parseFile(t testing.TB, major, name string) *explaintest.Plan {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "plans", major, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := explaintest.Parse(text)
	if err != nil {
		t.Fatalf("%s on %s: %v", name, major, err)
	}
	return p
}

// TestPlansOfEachMajor holds the rules to plans that servers of each major made, with a catalog that was written by hand.
func TestPlansOfEachMajor(t *testing.T) {
	for _, major := range majors {
		for _, c := range plancases.All() {
			if c.JIT && major != "15" { // only that one could compile
				continue
			}
			p := parseFile(t, major, c.Name)
			p.Catalog = plancases.Catalog()
			for _, problem := range c.Problems(p) {
				t.Errorf("PostgreSQL %s: %s", major, problem)
			}
		}
	}
}

// TestSubplans holds that the parts of a statement have the same names whatever the version: 17 took what an InitPlan returns
// out of its name.
func TestSubplans(t *testing.T) {
	for _, major := range majors {
		p := parseFile(t, major, "with_queries")
		var got []string
		p.Walk(func(n *explaintest.Node, _ []*explaintest.Node) {
			if kind, name := n.Subplan(); kind != "" {
				got = append(got, kind+" "+name)
			}
		})
		if want := "CTE old, CTE gone, InitPlan 2"; strings.Join(got, ", ") != want {
			t.Errorf("PostgreSQL %s: the subplans are %q; want %s", major, got, want)
		}
		for _, name := range []string{"old", "gone"} {
			if cte := p.CTE(name); cte == nil || cte.SubplanName != "CTE "+name {
				t.Errorf("PostgreSQL %s: the plan of WITH %s is %+v", major, name, cte)
			}
		}
		if cte := p.CTE("nothing"); cte != nil {
			t.Errorf("PostgreSQL %s: the plan of WITH nothing is %+v; want none", major, cte)
		}
	}
}

// TestCounts holds what executing a statement cost, in whatever form a version writes it.
func TestCounts(t *testing.T) {
	for _, major := range majors {
		p := parseFile(t, major, "with_queries")
		if !p.Analyzed || !p.Buffered {
			t.Fatalf("PostgreSQL %s: analyzed %t, buffered %t", major, p.Analyzed, p.Buffered)
		}
		root, gone := p.Root.SharedHit+p.Root.SharedRead, p.CTE("gone")
		if want := root + gone.SharedHit + gone.SharedRead; p.Buffers() != want || root == 0 || want < root+50 {
			t.Errorf("PostgreSQL %s: %d buffers, the root alone %d; want %d", major, p.Buffers(), root, want)
		}
		if p := parseFile(t, major, "with_rows_of_a_delete"); p.Buffers() != p.Root.SharedHit+p.Root.SharedRead || p.WALBytes() != p.Root.WALBytes {
			t.Errorf("PostgreSQL %s: %d buffers and %.0f bytes of WAL, though the root counts what its reader pulled:\n%s", major, p.Buffers(), p.WALBytes(), p)
		}
		if p.WALBytes() < 49*50 || p.WALBytes() != p.Root.WALBytes+gone.WALBytes {
			t.Errorf("PostgreSQL %s: %.0f bytes of WAL for 49 rows deleted", major, p.WALBytes())
		}
		if p := parseFile(t, major, "partitions"); p.Analyzed || p.Buffered {
			t.Errorf("PostgreSQL %s: a statement that was not executed has analyzed %t, buffered %t", major, p.Analyzed, p.Buffered)
		}
		// The probes of 60 rows find one in 20 of them a run that is running: a fraction of a row each, which 18 prints.
		for _, n := range parseFile(t, major, "probes").Relation("runs") {
			if n.Loops != 60 || n.ActualRows >= 1 {
				t.Errorf("PostgreSQL %s: %v rows in %v loops", major, n.ActualRows, n.Loops)
			}
			if fraction := n.ActualRows > 0; fraction != (major == "18") {
				t.Errorf("PostgreSQL %s: %v rows a loop", major, n.ActualRows)
			}
		}
	}
}

func TestRelation(t *testing.T) {
	p := parseFile(t, "15", "partitions")
	for name, want := range map[string]int{"deliveries": 0, "deliveries_january": 1, "public.deliveries_january": 1, "other.deliveries_january": 0} {
		if got := p.Relation(name); len(got) != want {
			t.Errorf("without a catalog the plan has %d scans of %s; want %d", len(got), name, want)
		}
	}
	p.Catalog = plancases.Catalog()
	if got := p.Relation("public.deliveries"); len(got) != 2 {
		t.Errorf("the plan has %d scans of deliveries; want those of its two partitions", len(got))
	}
}
