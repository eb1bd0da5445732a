package explaintest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/explaintest"
)

func TestParseRefuses(t *testing.T) {
	for text, says := range map[string]string{
		``:                   "it must be the text of EXPLAIN (FORMAT JSON)",
		`Seq Scan on events`: "it must be the text of EXPLAIN (FORMAT JSON)",
		`[]`:                 "0 statements instead of one",
		`[{"Plan": {"Node Type": "Result"}}, {"Plan": {"Node Type": "Result"}}]`: "2 statements instead of one",
		`[{"Plan": {"Node Type": "Result"}}] (1 row)`:                            "something follows the plan",
		`{"Plan": {"Node Type": "Result"}} x`:                                    "something follows the plan",
		`[{"Planning Time": 1}]`:                                                 `there is no "Plan"`,
		`[null]`:                                                                 `there is no "Plan"`,
		`[{"Plan": {}}]`:                                                         `no "Node Type"`,
		`[{"Plan": {"Node Type": "Limit", "Plans": [null]}}]`:                    `no "Node Type"`,
		`[{"Plan": {"Node Type": "Limit", "Actual Loops": "many"}}]`:             "Actual Loops",
	} {
		p, err := explaintest.Parse([]byte(text))
		if err == nil || p != nil {
			t.Errorf("%s: parsed", text)
		} else if !strings.Contains(err.Error(), says) {
			t.Errorf("%s: the error is %q; want %q in it", text, err, says)
		}
	}
}

// TestParseOfALog reads what auto_explain writes with its log_format set to json.
func TestParseOfALog(t *testing.T) {
	p, err := explaintest.Parse([]byte(`{"Query Text": "SELECT 1", "Plan": {"Node Type": "Result", "Unheard Of": [1]}}`))
	if err != nil || p.Root.Type != "Result" {
		t.Errorf("%+v, %v", p, err)
	}
}

// FuzzParse looks for a plan that the parser takes and that then cannot be checked or printed, or that is another one when
// it is read again, or out of a log.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "plans", "*", "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatalf("%d plans, %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "run_events", "run_events_retention", "created_at")
	}
	f.Add([]byte(`[{"Plan": {"Node Type": "CTE Scan", "CTE Name": "x", "Plans": [{"Node Type": "CTE Scan", "CTE Name": "x", "Subplan Name": "CTE x"}]}}]`), `"`, `a.b`, `ROW(`)
	f.Add([]byte(`[{"Plan": {"Node Type": "Index Scan", "Relation Name": "t", "Index Name": "i", "Index Cond": "((ROW(a.b, c) > ROW(1)) AND (E'\\"}}]`), "t", "i", "b")
	f.Fuzz(func(t *testing.T, text []byte, relation, index, column string) {
		p, err := explaintest.Parse(text)
		if err != nil {
			if p != nil {
				t.Error("a plan beside an error")
			}
			return
		}
		forms := [][]byte{text, append(append([]byte("\n["), text...), ']')} // a log has an object, the server a list of one
		if trimmed := bytes.TrimSpace(text); trimmed[0] == '[' {
			forms[1] = trimmed[1 : len(trimmed)-1]
		}
		for _, form := range forms {
			if again, err := explaintest.Parse(form); err != nil || !reflect.DeepEqual(again, p) {
				t.Errorf("%s\nis read as %+v, %v\nand before as %+v", form, again, err, p)
			}
		}
		uses := explaintest.UsesIndex(relation, index).Columns(column, "created_at")
		rules := []explaintest.Rule{
			uses, uses.BoundOn(column).DeleteSide(), uses.RangeOn("created_at").ReadSide(), uses.Whole().As("d").In("old"),
			explaintest.NodeType(relation, "Tid Scan"), explaintest.NoSeqScan(relation), explaintest.NoSort(), explaintest.NoSort().On(relation),
			explaintest.MaxBuffers(1), explaintest.MaxRowsRemovedByFilter(1), explaintest.NoJIT(),
		}
		if err := explaintest.Check(p, rules...); err != nil && !strings.Contains(err.Error(), "look at this") {
			t.Errorf("an error that says nothing to look at: %v", err)
		}
		if p.String() == "" {
			t.Error("a plan prints as nothing")
		}
		if nodes := p.Relation(relation); slices.Contains(nodes, nil) {
			t.Errorf("%q is scanned by no node", relation)
		}
		p.CTE(column)
		p.Buffers()
		p.WALBytes()
	})
}
