package sabotage

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const example = `
WITH due AS MATERIALIZED (  -- the next ones
  SELECT d.id
    FROM t AS d
   WHERE d.at <= $1::timestamptz  -- AND nothing else
     AND (d.kind IS NULL OR d.kind = $2::text)
   ORDER BY d.at, d.id
   LIMIT (SELECT $3::bigint)
     FOR UPDATE SKIP LOCKED
)
UPDATE t AS d
   SET state = 'done',
       ended = now()
  FROM due
 WHERE d.id = due.id
   AND d.state = 'open'
   AND d.state = 'open'`

var exampleClauses = []string{
	"due: WHERE d.at <= $1::timestamptz", "due: AND (d.kind IS NULL OR d.kind = $2::text)", "due: ORDER BY d.at, d.id", "due: LIMIT (SELECT $3::bigint)", "due: FOR UPDATE SKIP LOCKED",
	"SET state = 'done',", "ended = now()", "WHERE d.id = due.id", "AND d.state = 'open'", "AND d.state = 'open' (2)",
}

func TestClauses(t *testing.T) {
	var got []string
	for _, c := range Clauses(example) {
		got = append(got, c.Name())
		if line := strings.TrimSpace(comment.ReplaceAllString(example[c.Start:c.End], "")); !strings.HasPrefix(c.Text, line) {
			t.Errorf("%q stands at %q", c.Text, line)
		}
	}
	if !slices.Equal(got, exampleClauses) {
		t.Errorf("the clauses are\n%s", strings.Join(got, "\n"))
	}
}

func TestDropped(t *testing.T) {
	for line, want := range map[string]string{
		"WHERE d.at <= $1::timestamptz":   "WHERE true AND ($1::timestamptz IS NULL) IS NOT NULL",
		"AND d.state = 'open'":            "AND true",
		"AND e.run_id = r.id))":           "AND true))",
		"ORDER BY d.at, d.id":             "ORDER BY d.at DESC, d.id",
		"ORDER BY d.at DESC":              "ORDER BY d.at",
		"LIMIT (SELECT $3::bigint)) AS n": "LIMIT 1000 * $3::bigint) AS n",
		"LIMIT 1)":                        ")",
		"FOR UPDATE SKIP LOCKED":          "",
	} {
		if got := Dropped(line); got != want {
			t.Errorf("%s: %q, not %q", line, got, want)
		}
	}
}

func TestEdits(t *testing.T) {
	e := Edit{Statement: "take", Clause: "AND d.state = 'open' (2)"}
	sql, err := e.In(example)
	if err != nil || strings.Count(sql, "AND d.state = 'open'") != 1 || !strings.HasSuffix(sql, "AND true") {
		t.Errorf("%v\n%s", err, sql)
	}
	e.Also = "due: FOR UPDATE SKIP LOCKED"
	if sql, err = e.In(example); err != nil || strings.Contains(sql, "LOCKED") || !strings.HasSuffix(sql, "AND true") {
		t.Errorf("%v\n%s", err, sql)
	}
	for _, e := range []Edit{{Clause: "AND d.state = 'closed'"}, {Clause: "ended = now()", Instead: "       ended = now()"}} {
		if _, err := e.In(example); err == nil {
			t.Errorf("%+v: no error", e)
		}
	}
}

// TestProblems proves what keeps edits and clauses together: each list has one thing too few or too many.
func TestProblems(t *testing.T) {
	whole := func() Suite {
		s := Suite{Statements: map[string]string{"take": example}}
		for _, c := range exampleClauses[1:] {
			s.Edits = append(s.Edits, Edit{Statement: "take", Clause: c})
		}
		s.Exempt = []Exemption{{Statement: "take", Clause: exampleClauses[0]}}
		return s
	}
	for problem, change := range map[string]func(*Suite){
		"": func(*Suite) {},
		`no edit takes this out, and it is not exempt: take, "AND d.state = 'open' (2)"`: func(s *Suite) { s.Edits = s.Edits[:len(s.Edits)-1] },
		`no edit takes this out, and it is not exempt: take, "due: AND d.new"`: func(s *Suite) {
			s.Statements["take"] = strings.Replace(example, "   ORDER", "     AND d.new\n   ORDER", 1)
		},
		`take has no clause "AND d.old", of which there is an edit`: func(s *Suite) {
			s.Edits = append(s.Edits, Edit{Statement: "take", Clause: "AND d.old"})
		},
		`gone has no clause "LIMIT 1", of which there is an exemption`: func(s *Suite) {
			s.Exempt = append(s.Exempt, Exemption{Statement: "gone", Clause: "LIMIT 1"})
		},
		`take, "ended = now()" is exempt and has an edit`: func(s *Suite) {
			s.Exempt = append(s.Exempt, Exemption{Statement: "take", Clause: "ended = now()"})
		},
	} {
		s := whole()
		change(&s)
		if got := strings.Join(s.Problems(), "\n"); got != problem {
			t.Errorf("%q is found instead of %q", got, problem)
		}
	}
}

func TestPieces(t *testing.T) {
	const sql = `WITH seen AS MATERIALIZED (  -- a comment AND no clause
  SELECT count(*) FILTER (WHERE NOT (e.a = 1 OR coalesce(e.b = 2, false))) AS n FROM ONLY t e
   WHERE e.at < coalesce((SELECT g.at FROM edge g), now()) AND true
)
SELECT set_config('x', 'y', true) FROM seen`
	var got []string
	for _, p := range Pieces(sql, func(line string) string { return line }) {
		got = append(got, p.Part+"|"+p.Text)
	}
	want := []string{"seen|MATERIALIZED", "seen|NOT e.a = 1", "seen|coalesce(e.b = 2, false)", "seen|FROM ONLY t e", "seen|e.at < coalesce((SELECT g.at FROM edge g), now())", "|set_config('x', 'y', true)"}
	if !slices.Equal(got, want) {
		t.Errorf("the pieces are\n%s", strings.Join(got, "\n"))
	}
	taken := Taken(sql, strings.Replace(sql, "e.a = 1 OR ", "", 1), func(line string) string { return line })
	if len(taken) == 0 || !slices.ContainsFunc(taken, func(p Piece) bool { return strings.Contains(p.Text, "e.a = 1") }) {
		t.Errorf("taken: %v", taken)
	}
	if taken := Taken(sql, sql, func(line string) string { return line }); len(taken) > 0 {
		t.Errorf("taken of nothing: %v", taken)
	}
}

func TestTheReportIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sabotage.md")
	a := Report{Package: "a", Rows: []Row{{"take", "AND x || y", "", "someone"}}, Exempt: []Exemption{{"take", "LIMIT 1", "saves reading"}}}
	b := Report{Package: "b", Rows: []Row{{"give", "AND z", "AND true", "another"}}}
	if a.Keep(file, false) == nil {
		t.Error("a file that is not there is none")
	}
	for _, r := range []Report{b, a, b} {
		if err := r.Keep(file, true); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []Report{a, b} {
		if err := r.Keep(file, false); err != nil {
			t.Error(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Index(string(text), "## a") > strings.Index(string(text), "## b") || !strings.Contains(string(text), "| take | `AND x \\|\\| y` | - | someone |") {
		t.Errorf("%v\n%s", err, text)
	}
	a.Rows[0].Victim = "nobody"
	if err := a.Keep(file, false); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("another victim: %v", err)
	}
	if err := b.Keep(file, false); err != nil {
		t.Error(err)
	}
}
