package explaintest_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prunectl/prunectl/explaintest"
	"github.com/prunectl/prunectl/explaintest/internal/plancases"
)

func parse(t testing.TB, text string) *explaintest.Plan {
	t.Helper()
	p, err := explaintest.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestFailure holds what a failure looks like, whole.
func TestFailure(t *testing.T) {
	p := parseFile(t, "15", "delete_by_join")
	p.Catalog = plancases.Catalog()
	err := explaintest.Check(p,
		explaintest.UsesIndex("run_events", "run_events_retention").ReadSide().BoundOn("created_at"), // holds
		explaintest.NodeType("run_events", "Tid Scan").DeleteSide(),
		explaintest.NoSeqScan("run_events"),
		explaintest.UsesIndex("run_events", "run_events_retention").ReadSide().RangeOn("created_at"),
	)
	const want = `the plan breaks 3 rules
run_events on the delete side is read by a Tid Scan
  [1] public.run_events is read by a Seq Scan
      look at this: ctid IN (SELECT ...) is a join, which may read the table whole; ctid = ANY (ARRAY(SELECT ...)) goes to each row by its address
no Seq Scan of run_events
  [2] public.run_events is read whole
      look at this: is there a valid index, does the statement have a condition on its first column, does a partial index's predicate follow from the statement, and has the table enough rows and been analysed; and do the settings below the plan forbid it
run_events on the read side is read through the index run_events_retention, bounded on created_at at both ends
  [3] the index run_events_retention is read by the condition (e.created_at < '2026-02-01 00:00:00+00'::timestamp with time zone): created_at has no lower bound
      look at this: without one the scan begins, or goes on, where nothing is wanted: among dead entries at the head, or rows that are kept

     Delete on public.run_events d  (cost=0.00 rows=0)
       ->  Hash Join  (cost=0.00 rows=0)
             Hash Cond: (d.ctid = "ANY_subquery".ctid)
[1]>
[2]>         ->  Seq Scan on public.run_events d  (cost=0.00 rows=0)
             ->  Hash  (cost=0.00 rows=0)
                   ->  HashAggregate  (cost=0.00 rows=0)
                         ->  Subquery Scan on ANY_subquery  (cost=0.00 rows=0)
                               ->  Limit  (cost=0.00 rows=0)
[3]>                                 ->  Index Scan using run_events_retention on public.run_events e  (cost=0.00 rows=0)
                                           Index Cond: (e.created_at < '2026-02-01 00:00:00+00'::timestamp with time zone)
     Setting: enable_mergejoin = off
     Setting: enable_nestloop = off
     Setting: plan_cache_mode = force_custom_plan`
	if err == nil {
		t.Fatal("the plan keeps the rules")
	}
	if diff := cmp.Diff(want, costless.ReplaceAllString(err.Error(), "(cost=0.00 rows=0)")); diff != "" {
		t.Error(diff)
	}
	var b *explaintest.Broken
	if !errors.As(err, &b) || len(b.Rules) != 3 || b.Rules[1].Faults[0].Node.Type != "Seq Scan" {
		t.Errorf("the error holds %+v", b)
	}
}

// TestCheckOfNothing holds that what cannot be seen does not pass.
func TestCheckOfNothing(t *testing.T) {
	p := parse(t, `[{"Plan": {"Node Type": "Index Scan", "Relation Name": "t", "Index Name": "i", "Index Cond": "(a < 1)"}}]`)
	uses := explaintest.UsesIndex("t", "i")
	for says, err := range map[string]error{
		"no rule is given":                   explaintest.Check(p),
		"there is no plan":                   explaintest.Check(nil, uses),
		"check of a plan: there is no plan":  explaintest.Check(&explaintest.Plan{}, uses),
		"its columns are in no catalog":      explaintest.Check(p, uses.BoundOn("a")),
		"it has no column b":                 explaintest.Check(p, uses.Columns("a").BoundOn("b")),
		"does not read u":                    explaintest.Check(p, explaintest.NoSeqScan("u")),
		"does not read t on the delete side": explaintest.Check(p, explaintest.NodeType("t", "Index Scan").DeleteSide()),
		"does not read t x":                  explaintest.Check(p, uses.As("x")),
		"was not executed":                   explaintest.Check(p, explaintest.MaxBuffers(10)),
		"nothing was counted":                explaintest.Check(p, explaintest.MaxRowsRemovedByFilter(10)),
		"buffers were not counted":           explaintest.Check(parse(t, `[{"Plan": {"Node Type": "Result", "Actual Loops": 1}}]`), explaintest.MaxBuffers(10)),
	} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v; want %q in it", err, says)
		}
	}
	for _, r := range []explaintest.Rule{uses, uses.Columns("a").BoundOn("a"), explaintest.NoJIT(), explaintest.NoSeqScan("t")} {
		if err := explaintest.Check(p, r); err != nil {
			t.Errorf("%s: %v", r, err)
		}
	}
}

// TestBitmaps holds that of two indexes whose rows are intersected one bounds the scan, and of two that are joined each must.
func TestBitmaps(t *testing.T) {
	scan := func(how string) *explaintest.Plan {
		return parse(t, `[{"Plan": {"Node Type": "Bitmap Heap Scan", "Schema": "public", "Relation Name": "t", "Alias": "t", "Plans": [{"Node Type": "`+how+`", "Plans": [
  {"Node Type": "Bitmap Index Scan", "Index Name": "other", "Index Cond": "(b = 1)"}, {"Node Type": "Bitmap Index Scan", "Index Name": "i", "Index Cond": "(a < 1)"}]}]}}]`)
	}
	uses := explaintest.UsesIndex("t", "i").Columns("a").BoundOn("a")
	if err := explaintest.Check(scan("BitmapAnd"), uses); err != nil {
		t.Error(err)
	}
	for how, rule := range map[string]explaintest.Rule{"BitmapOr": uses, "BitmapAnd": explaintest.UsesIndex("t", "third")} {
		if err := explaintest.Check(scan(how), rule); err == nil || !strings.Contains(err.Error(), "[1]>         ->  Bitmap Index Scan on other") {
			t.Errorf("%s: the error is %v", how, err)
		}
	}
	if err := explaintest.Check(parse(t, `[{"Plan": {"Node Type": "Bitmap Heap Scan", "Relation Name": "t"}}]`), uses); err == nil {
		t.Error("a bitmap scan without an index passes")
	}
}

// TestRulesAreValues holds that narrowing a rule leaves the rule that it was made from as it was.
func TestRulesAreValues(t *testing.T) {
	base := explaintest.UsesIndex("t", "i").BoundOn("a")
	_, _ = base.BoundOn("b").DeleteSide().As("x").In("y").Whole(), base.RangeOn("c")
	base = base.BoundOn("b", "c")
	d := base.BoundOn("d")
	_, _ = base.BoundOn("e"), base.RangeOn("f")
	if got, want := d.String(), "t is read through the index i, bounded on a and b and c and d"; got != want {
		t.Errorf("the rule is %q; want %q", got, want)
	}
	scan := explaintest.NoSeqScan("s.t")
	if _, got := scan.ReadSide().In("y").As("x"), scan.String(); got != "no Seq Scan of s.t" {
		t.Errorf("the rule is %q", got)
	}
	if got := scan.ReadSide().In("y").As("x").String(); got != "no Seq Scan of s.t x in WITH y on the read side" {
		t.Errorf("the rule is %q", got)
	}
}

// costless stands for estimates, which differ between runs of ANALYZE.
var costless = regexp.MustCompile(`\(cost=[\d.]+ rows=\d+\)`)
