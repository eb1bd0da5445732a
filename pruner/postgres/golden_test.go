package postgres

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

var update = flag.Bool("update", false, "write the golden copies anew")

// specimenSchema has a table for each kind of statement. Nothing in it depends on the server's version.
const specimenSchema = `
CREATE TYPE job_state AS ENUM ('available', 'running', 'completed', 'cancelled', 'discarded');
CREATE TABLE runs (tenant_id text NOT NULL, id text NOT NULL, status text NOT NULL, note text, PRIMARY KEY (tenant_id, id));
CREATE TABLE run_events (tenant_id text NOT NULL, run_id text NOT NULL, sequence int NOT NULL, kind text, created_at timestamptz NOT NULL, note text,
  PRIMARY KEY (tenant_id, run_id, sequence));
CREATE INDEX run_events_retention ON run_events (created_at, tenant_id, run_id, sequence);
CREATE TABLE jobs (id bigint PRIMARY KEY, state job_state NOT NULL, queue text, finished_at timestamptz, note text);
CREATE INDEX jobs_finished ON jobs (finished_at, id);
CREATE TABLE tasks (id bigint PRIMARY KEY, state job_state NOT NULL, finished_at timestamptz, note text);
CREATE INDEX tasks_finished ON tasks (state, finished_at, id) WHERE finished_at IS NOT NULL;
CREATE TABLE tickets (id bigint PRIMARY KEY, state text NOT NULL, at timestamptz NOT NULL, note text);
CREATE INDEX tickets_settled ON tickets (at, id) WHERE state IN ('closed', 'spam');
CREATE TABLE notes (id bigint PRIMARY KEY, kind text, created_at timestamptz NOT NULL, note text);
CREATE INDEX notes_age ON notes (kind, created_at, id);
CREATE TABLE lines (id bigint PRIMARY KEY, kind text, created_at timestamptz NOT NULL, note text);
CREATE INDEX lines_age ON lines (created_at DESC, id DESC);
CREATE TABLE marks (id bigint PRIMARY KEY, created_at timestamptz NOT NULL, note text);
CREATE INDEX marks_age ON marks (created_at);
CREATE TABLE watched (id bigint PRIMARY KEY, state text NOT NULL, created_at timestamptz NOT NULL, note text);
CREATE INDEX watched_age ON watched (created_at, id);
CREATE FUNCTION watched_removed() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END';
CREATE TRIGGER watched_removed BEFORE DELETE ON watched FOR EACH ROW EXECUTE FUNCTION watched_removed();
CREATE SCHEMA "Audit-Log";
CREATE TYPE "Audit-Log"."Status" AS ENUM ('It''s done', 'Open');
CREATE TABLE "Audit-Log"."Run ""Events""" ("Id" bigint PRIMARY KEY, "order" "Audit-Log"."Status", "createdAt" timestamptz NOT NULL);
CREATE INDEX "Idx.Created At" ON "Audit-Log"."Run ""Events""" ("createdAt", "Id");
`

// specimen is a sweep whose statements are looked at.
type specimen struct {
	name  string
	sweep policy.Sweep
	gate  bool
	arm   int
}

// specimens are sweeps of specimenSchema that differ in the text of a batch.
func specimens() []specimen {
	const day = 24 * time.Hour
	public := func(name string) policy.Name { return policy.Name{Schema: "public", Table: name} }
	on := func(table, age string, g policy.Guard, change ...func(*policy.Sweep)) policy.Sweep {
		s := policy.Sweep{Name: table, Table: public(table), Age: age, Window: policy.MustWindow(30 * day), Guard: g}
		for _, c := range change {
			c(&s)
		}
		return s
	}
	none := policy.Guard{None: "nothing is owed here"}
	owner := runEvents().Guard
	final := policy.Guard{Owner: new(policy.OwnerGuard)}
	*final.Owner = *owner.Owner
	final.Owner.Final = true
	state := func(terminal ...string) policy.Guard {
		return policy.Guard{State: &policy.StateGuard{Column: "state", Terminal: policy.Texts(terminal...)}}
	}
	three := state("completed", "cancelled", "discarded")
	windows := func(s *policy.Sweep) {
		s.Window = policy.Never
		s.ByState = []policy.StateWindow{{State: policy.Text("completed"), Window: policy.MustWindow(day)}, {State: policy.Text("cancelled"), Window: policy.MustWindow(day)},
			{State: policy.Text("discarded"), Window: policy.MustWindow(7 * day)}}
	}
	only := func(ms ...policy.Match) func(*policy.Sweep) { return func(s *policy.Sweep) { s.Only = ms } }
	kind := func(not bool, vs ...policy.Value) policy.Match {
		return policy.Match{Column: "kind", Values: vs, Not: not}
	}
	both := policy.Guard{Owner: owner.Owner, State: &policy.StateGuard{Column: "kind", Terminal: policy.Texts("step", "end")}}
	return append([]specimen{
		{name: "owner", sweep: on("run_events", "created_at", owner)},
		{name: "owner_gate", sweep: on("run_events", "created_at", owner), gate: true},
		{name: "owner_final", sweep: on("run_events", "created_at", final)},
		{name: "owner_only", sweep: on("run_events", "created_at", owner, only(kind(true, policy.Null, policy.Text("keep"))))},
		{name: "owner_and_state", sweep: on("run_events", "created_at", both)},
		{name: "state", sweep: on("jobs", "finished_at", three)},
		{name: "state_gate", sweep: on("jobs", "finished_at", three), gate: true},
		{name: "state_one", sweep: on("jobs", "finished_at", state("discarded"))},
		{name: "state_windows", sweep: on("jobs", "finished_at", three, windows, func(s *policy.Sweep) { s.ByState[1].Window = policy.Never })},
		{name: "ended", sweep: on("jobs", "finished_at", policy.Guard{Ended: true})},
		{name: "state_arm", sweep: on("tasks", "finished_at", three, windows), arm: 1},
		{name: "state_within", sweep: on("tickets", "at", state("closed", "spam"))},
		{name: "none", sweep: on("notes", "created_at", none, only(kind(false, policy.Text("a"))))},
		{name: "none_gate", sweep: on("lines", "created_at", none), gate: true},
		{name: "only_list", sweep: on("lines", "created_at", none, only(kind(false, policy.Text("a"), policy.Text("b"))))},
		{name: "only_not", sweep: on("lines", "created_at", none, only(kind(true, policy.Text("a"))))},
		{name: "only_null", sweep: on("lines", "created_at", none, only(kind(false, policy.Null)))},
		{name: "untied", sweep: on("marks", "created_at", none)},
		{name: "untied_gate", sweep: on("marks", "created_at", none), gate: true},
		{name: "returning", sweep: on("watched", "created_at", state("completed", "failed"))},
		{name: "settings", sweep: on("lines", "created_at", none, func(s *policy.Sweep) {
			s.Sync = true
			s.Set = []policy.Setting{{Name: "row_security", Value: "on"}, {Name: "app.tenant", Value: `o'hara\`}}
		})},
		{name: "quoted", sweep: policy.Sweep{Name: "quoted", Table: policy.Name{Schema: "Audit-Log", Table: `Run "Events"`}, Age: "createdAt", Index: "Idx.Created At",
			Window: policy.MustWindow(30 * day), Guard: policy.Guard{State: &policy.StateGuard{Column: "order", Terminal: policy.Texts("It's done")}}}},
	}, rowSpecimens()...)
}

// open is the specimen's arm.
func (s specimen) open(t testing.TB, db *DB) *Arm {
	t.Helper()
	arms, err := Open(context.Background(), db, s.sweep, Options{OneSweeper: s.gate})
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return arms[s.arm]
}

var specimenDB = pgtest.NewTemplate("specimens", func(ctx context.Context, dsn string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	return c.PgConn().Exec(ctx, specimenSchema+rowSpecimenSchema).Close()
})

// shapesOf lists every statement that a batch of the arm may send, by a name for its file.
func shapesOf(a *Arm) map[string]shape {
	m := map[string]shape{}
	for mode, name := range map[pruner.Mode]string{pruner.Remove: "remove", pruner.SkipLocked: "skip", pruner.StepStuck: "step"} {
		m[name] = shape{mode: mode}
		m[name+"_group"] = shape{mode: mode, group: true}
		if len(a.ties.columns) > 0 {
			m[name+"_group_next"] = shape{mode: mode, group: true, next: true}
		}
	}
	return m
}

// statementsOf lists every statement of the arm by name: those of its batches and of its looks.
func statementsOf(a *Arm) map[string]statement {
	m := map[string]statement{
		"settings": a.settingsSQL(), "settings_look": {sql: a.readSettingsSQL()}, "plan": a.planSQL(),
		"undated_null": a.undatedSQL(true, 100), "undated_old": a.undatedSQL(false, 100),
	}
	if a.arm.CountsHeld() {
		m["held"] = a.heldSQL()
	}
	for name, s := range shapesOf(a) {
		m[name] = a.render(s)
		m["after_"+name] = a.afterSQL(s)
	}
	return m
}

// kept lists the statements that have a golden copy: each clause of each kind once or more, not each product of them.
var kept = map[string][]string{
	"owner":           {"settings", "settings_look", "remove", "after_remove", "skip", "after_skip", "step", "remove_group", "remove_group_next", "plan", "held", "undated_old"},
	"owner_gate":      {"remove", "remove_group_next"},
	"owner_final":     {"remove"},
	"owner_only":      {"remove", "plan"},
	"owner_and_state": {"remove", "held"},
	"state":           {"remove", "skip", "step_group", "remove_group", "remove_group_next", "plan", "held", "undated_null"},
	"state_gate":      {"skip"},
	"state_one":       {"remove"},
	"state_arm":       {"remove", "undated_old"},
	"state_windows":   {"remove", "remove_group_next", "plan"},
	"state_within":    {"remove", "remove_group_next"},
	"ended":           {"remove"},
	"none":            {"remove", "plan", "undated_old"},
	"none_gate":       {"remove_group_next"},
	"only_list":       {"remove"},
	"only_not":        {"remove"},
	"only_null":       {"remove"},
	"untied":          {"remove_group", "after_remove_group", "skip_group", "step_group"},
	"untied_gate":     {"remove_group"},
	"returning":       {"remove", "after_remove", "skip"},
	"settings":        {"settings"},
	"quoted":          {"remove", "remove_group_next", "after_skip"},
}

var oid = regexp.MustCompile(`(pg_stat_get_xact_tuples_deleted)\(\d+\)`)

// TestGolden holds the text of the statements against their reviewed copies. The server takes each of them too.
func TestGolden(t *testing.T) {
	db := specimenDB.New(t)
	conn := db.Conn(t)
	maps.Copy(kept, rowKept)
	kind := goldens{}
	for _, sp := range specimens() {
		arm := sp.open(t, Conn(conn))
		all := statementsOf(arm)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if _, err := conn.PgConn().Prepare(t.Context(), "", all[name].sql, nil); err != nil {
				t.Errorf("%s: the server refuses %s: %v\n%s", sp.name, name, err, all[name].sql)
			}
		}
		kind.hold(t, filepath.Join("testdata", "sql", sp.name), all, kept[sp.name])
	}
	kind.whole(t, filepath.Join("testdata", "sql", "*.sql"), regexp.MustCompile("/parents_")) // TestGoldenParents has those
}

// TestLint holds every statement of every specimen to the rules that keep such text right.
func TestLint(t *testing.T) {
	conn := specimenDB.New(t).Conn(t)
	n := 0
	for _, sp := range specimens() {
		arm := sp.open(t, Conn(conn))
		for name, st := range statementsOf(arm) {
			n++
			for _, fault := range lint(st) {
				t.Errorf("%s, %s: %s\n%s", sp.name, name, fault, st.sql)
			}
		}
	}
	if n < 250 {
		t.Errorf("only %d statements were looked at", n)
	}
}

// TestLintFinds proves the rules: each of these statements breaks one.
func TestLintFinds(t *testing.T) {
	for _, c := range []struct{ fault, sql string }{
		{"is not qualified", `SELECT e."id" FROM ONLY "s"."t" e WHERE "state" = 'x'::pg_catalog.text`},
		{"is not qualified", `SELECT e."id" FROM ONLY "s"."t" e WHERE ctid = ANY ('{}'::tid[])`},
		{"is not qualified", `WITH edge AS MATERIALIZED (SELECT e."at" AS at FROM ONLY "s"."t" e) SELECT at FROM edge g`},
		{"is not qualified", `SELECT count(*) AS n FROM ONLY "s"."t" e GROUP BY n`},
		{"without ONLY", `SELECT e."id" FROM "s"."t" e`},
		{"without ONLY", `DELETE FROM "s"."t" e`},
		{"without ONLY", `SELECT r."id" FROM ONLY "s"."t" e JOIN "s"."r" r ON true`},
		{"a list of addresses alone", `SELECT e."id" FROM ONLY "s"."t" e WHERE e."state" = ANY ('{done}'::text[])`},
		{"a list of addresses alone", `SELECT e."id" FROM ONLY "s"."t" e WHERE e."state" = ANY ($1::text[])`},
		{"IN with one value", `SELECT e."id" FROM ONLY "s"."t" e WHERE e."state" IN ('done'::pg_catalog.text)`},
		{"has no type", `SELECT e."id" FROM ONLY "s"."t" e WHERE e."state" = 'done'`},
		{"has no type", `SELECT e."id" FROM ONLY "s"."t" e WHERE e."id" = $1`},
		{"is spliced in", `SELECT e."id" FROM ONLY "s"."t" e WHERE e."id" = 17`},
		{"SELECT *", `SELECT * FROM ONLY "s"."t" e`},
		{"SELECT *", `SELECT e.* FROM ONLY "s"."t" e`},
		{"no alias", `SELECT 1 AS n FROM ONLY "s"."t"`},
		{"parameter $2 has no value", `SELECT $1::int AS n, $2::int AS m`},
	} {
		faults := lint(statement{sql: c.sql, args: []string{"one"}})
		if !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, c.fault) }) {
			t.Errorf("the rules find %q in %q; want %q", faults, c.sql, c.fault)
		}
	}
	sound := statement{sql: `SELECT e."id" FROM ONLY "s"."t" e WHERE e."state" IN ('a'::"S"."T", 'b''c'::"S"."T") AND e.ctid = ANY ('{}'::tid[]) -- it's = ANY("x")`}
	if faults := lint(sound); len(faults) > 0 {
		t.Errorf("the rules find %q in a sound statement", faults)
	}
}

// The words that may stand alone in a statement.
var sqlWords = strings.Fields(`select from only where and or not is null true false as with materialized order by desc offset limit group having
	join left lateral on using case when then else end filter in any array for share update skip locked delete returning except union all distinct`)

var sqlToken = regexp.MustCompile(`E?'(?:[^']|'')*'|"(?:[^"]|"")*"|\$\d+|[A-Za-z_][A-Za-z_0-9]*|\d+|::|[<>=!]+|[^\s]`)

var sqlComment = regexp.MustCompile(`--[^\n]*`)

// lint lists what is wrong with the text of a statement, read as tokens.
func lint(st statement) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	ts := sqlToken.FindAllString(withoutComments(st.sql), -1)
	at := func(i int) string {
		if i < 0 || i >= len(ts) {
			return ""
		}
		return ts[i]
	}
	is := func(i int, words ...string) bool { return slices.Contains(words, strings.ToLower(at(i))) }
	name := func(s string) bool {
		return s != "" && (s[0] == '"' || regexp.MustCompile(`^[A-Za-z_]`).MatchString(s)) && !strings.HasPrefix(s, "E'")
	}
	// queries are the names of WITH, by which no real table is meant.
	queries := map[string]bool{}
	for i := range ts {
		if is(i+1, "as") && (is(i+2, "materialized") || is(i+2, "(")) && (is(i-1, "with") || is(i-1, ",") && is(i-2, ")")) {
			queries[ts[i]] = true
		}
	}
	inType := func(i int) bool { // x::schema.type or x::type
		for ; i > 0 && (is(i-1, ".") || is(i-1, "::")); i -= 2 {
			if is(i-1, "::") {
				return true
			}
		}
		return false
	}
	for i, tok := range ts {
		switch {
		case tok[0] == '\'' || strings.HasPrefix(tok, "E'"):
			setting := is(i-1, "(") && is(i-2, "set_config", "current_setting") || is(i-1, ",") && is(i-2, "set_config")
			inSet := slices.Contains(ts[max(0, i-4):i], "set_config") && i > 0 && is(i-1, ",") // the value of a fixed setting
			literalWord := is(i-1, "interval") || is(i-1, "from") || is(i-1, "when", "then", "else") || is(i+1, "as") && is(i-1, "select")
			empty := tok == "'{}'" || tok == "''"
			if !is(i+1, "::") && !setting && !inSet && !literalWord && !empty {
				fault("the literal %s has no type", tok)
			}
		case tok[0] == '$':
			if !is(i+1, "::") {
				fault("the parameter %s has no type", tok)
			}
			if n, _ := strconv.Atoi(tok[1:]); n > len(st.args) {
				fault("the parameter %s has no value", tok)
			}
		case tok[0] >= '0' && tok[0] <= '9':
			bound := is(i-1, "limit", "offset", "by") || is(i-1, ",") && is(i-3, "by") || is(i-1, ">", "=") && is(i-2, "1") || is(i-1, ">") && tok == "0"
			fixed := tok == "0" || tok == "1000" || tok == "1000000"
			argument := is(i-1, "(", "-") && (is(i-2, "pg_try_advisory_xact_lock", "pg_stat_get_xact_tuples_deleted", "(") || is(i-2, "("))
			if !bound && !fixed && !argument && !is(i-1, ",") {
				fault("the value %s is spliced in", tok)
			} else if is(i-1, "=") {
				fault("the value %s is spliced in", tok)
			}
		case tok == "*":
			all := is(i-1, "(") && is(i-2, "count") || is(i-1, ")") && is(i-2, "interval")                            // count(*), and a product
			product := is(i-1, ")") && i+1 < len(ts) && ts[i+1][0] >= '0' && ts[i+1][0] <= '9' || is(i+1, "interval") // a number of days
			ofQuery := is(i-1, ".") && fromQuery(ts, at(i-2), queries)
			if !all && !product && !ofQuery {
				fault("SELECT * reads whatever the table has")
			}
		case is(i, "any") && is(i+1, "("):
			if !is(i-1, "=") || !is(i-2, "ctid") {
				fault("= ANY is for a list of addresses alone, and stands after %s", at(i-2))
			}
		case is(i, "in") && is(i+1, "("):
			comma := false
			for j := i + 2; j < len(ts) && ts[j] != ")"; j++ {
				comma = comma || ts[j] == ","
			}
			if !comma {
				fault("IN with one value misses a partial index that = finds")
			}
		case is(i, "from", "join") && is(i+1, "only") || is(i, "from", "join") && name(at(i+1)) && !is(i+1, "lateral", "current_setting"):
			j := i + 1
			if is(j, "only") {
				j++
			} else if !queries[at(j)] && !is(j, "unnest") && at(j-2) != "epoch" {
				fault("the table %s is read without ONLY", at(j))
			}
			for is(j+1, ".") {
				j += 2
			}
			if !name(at(j+1)) || slices.Contains(sqlWords, strings.ToLower(at(j+1))) {
				if at(i-1) != "epoch" && !queries[at(j)] { // without an alias none of a query's columns can be read
					fault("the table %s has no alias", at(j))
				}
			}
		case name(tok) && !slices.Contains(sqlWords, strings.ToLower(tok)):
			qualified := is(i-1, ".") || is(i+1, ".")
			function := is(i+1, "(")
			named := is(i-1, "as") // AS name
			query := queries[tok]
			alias := name(at(i-1)) && !slices.Contains(sqlWords, strings.ToLower(at(i-1))) || is(i-1, ")") // FROM t alias, ) alias
			word := is(i, "interval", "epoch") || is(i, "at") && is(i+1, "time") || is(i, "time") && is(i-1, "at") || is(i, "zone") && is(i-1, "time")
			if !qualified && !function && !named && !query && !alias && !word && !inType(i) {
				fault("the column %s is not qualified", tok)
			}
		}
	}
	return faults
}

// withoutComments drops comments, and leaves alone what looks like one inside a literal or a name.
func withoutComments(sql string) string {
	var b strings.Builder
	for sql != "" {
		i := strings.IndexAny(sql, `'"-`)
		if i < 0 {
			break
		}
		b.WriteString(sql[:i])
		sql = sql[i:]
		end := 1
		switch {
		case sql[0] == '-' && strings.HasPrefix(sql, "--"):
			sql = sql[len(sqlComment.FindString(sql)):]
			continue
		case sql[0] != '-':
			if end = strings.IndexByte(sql[1:], sql[0]) + 2; end < 2 {
				end = len(sql)
			}
		}
		b.WriteString(sql[:end])
		sql = sql[end:]
	}
	return b.String() + sql
}

// fromQuery reports whether the alias is of one of the statement's own queries.
func fromQuery(ts []string, alias string, queries map[string]bool) bool {
	for i := range ts {
		if i > 0 && ts[i] == alias && queries[ts[i-1]] {
			return true
		}
	}
	return false
}
