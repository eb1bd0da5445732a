package postgres

import (
	"context"

	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/prunertest"
)

// clause is a part of what a batch sends, the edit that takes it out, and who must notice.
type clause struct {
	name   string
	under  func(string) string // what the edit is made on: a form of the statement in which the clause stands alone
	edit   func(string) string // of the batch's statement
	look   func(string) string // of the looks; it makes them no longer
	wire   [2]string           // of everything else: a text and what is sent in its place, no longer than it
	victim victim
}

// victim is a check that is green while nothing is taken out.
type victim struct {
	name string
	run  func(context.Context, *bench) error
}

// bench is where a victim runs, with the edit in force.
type bench struct {
	t       *testing.T
	db      *pgtest.DB
	clause  clause
	touched bool // the edit changed a text
	seen    seen // what is run, where somebody wants to know
}

// edit is for Arm.edit. Shapes without the clause stay as they are.
func (b *bench) edit(_ shape, sql string) string {
	b.seen.saw("batch", sql)
	if b.clause.edit == nil {
		return sql
	}
	if b.clause.under != nil {
		sql = b.clause.under(sql)
	}
	edited := b.clause.edit(sql)
	b.touched = b.touched || edited != sql
	return edited
}

// forge has a connection send what the clause says in place of what it should.
func (b *bench) forge(c *pgx.ConnConfig) {
	if b.clause.wire[0] == "" && b.clause.look == nil && b.seen == nil {
		return
	}
	forging(c, func(sent string) string {
		was := sent
		sent = replaced(sent, b.clause.wire)
		for form, begin := range looksBegin {
			sent = begin.ReplaceAllStringFunc(sent, func(sql string) string {
				b.seen.saw(form, sql)
				if b.clause.look == nil {
					return sql
				}
				return padded(b.clause.look(sql), len(sql))
			})
		}
		b.touched = b.touched || sent != was
		return sent
	})
}

// forging has a connection send what forge makes of it. The messages keep their length.
func forging(c *pgx.ConnConfig, forge func(string) string) {
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &forger{conn, forge}, err
	}
}

type forger struct {
	net.Conn
	forge func(string) string
}

func (f *forger) Write(p []byte) (int, error) { return f.Conn.Write([]byte(f.forge(string(p)))) }

// replaced puts the second text in the place of the first, if there is one.
func replaced(sent string, wire [2]string) string {
	if wire[0] == "" {
		return sent
	}
	return strings.ReplaceAll(sent, wire[0], padded(wire[1], len(wire[0])))
}

// padded is a text with blanks behind it.
func padded(text string, length int) string {
	if len(text) > length {
		panic("longer than the text it stands for: " + text)
	}
	return text + strings.Repeat(" ", length-len(text))
}

// looksBegin finds the statements of the looks in what is sent.
var looksBegin = map[string]*regexp.Regexp{
	"look":    regexp.MustCompile(`WITH (?:seen|found) AS MATERIALIZED \(  -- the oldest rows before the cutoff[^\x00]*`),
	"undated": regexp.MustCompile(`SELECT count\(\*\), count\(\*\) FILTER \(WHERE[^\x00]*`),
}

// inQuery restricts an edit to one query of the WITH list, "" for what follows it.
func inQuery(query string, edit func(string) string) func(string) string {
	return func(sql string) string {
		start := regexp.MustCompile(`(?m)^(WITH |\), )` + query + ` AS [^\n]*\n`).FindStringIndex(sql)
		if query == "" {
			start = regexp.MustCompile(`(?m)^\)\n`).FindStringIndex(sql)
		}
		if start == nil {
			return sql
		}
		end := len(sql)
		if next := regexp.MustCompile(`(?m)^\)`).FindStringIndex(sql[start[1]:]); next != nil {
			end = start[1] + next[0]
		}
		return sql[:start[1]] + edit(sql[start[1]:end]) + sql[end:]
	}
}

// re replaces each match.
func re(pattern, instead string) func(string) string {
	r := regexp.MustCompile(pattern)
	return func(sql string) string { return r.ReplaceAllString(sql, instead) }
}

// chain makes one edit after the other.
func chain(edits ...func(string) string) func(string) string {
	return func(sql string) string {
		for _, e := range edits {
			sql = e(sql)
		}
		return sql
	}
}

// twist changes the populations of a check.
type twist struct {
	name string
	make func(*prunertest.Fixture)
}

// conformance is the check of the contract with this name, on populations that are changed like this.
func conformance(name string, twists ...twist) victim {
	v := victim{name: name}
	for _, tw := range twists {
		v.name += ", " + tw.name
	}
	v.run = func(ctx context.Context, b *bench) error {
		for _, c := range prunertest.Checks() {
			if c.Name == name {
				return c.Run(ctx, b.factory(twists...))
			}
		}
		return fmt.Errorf("there is no check %q", name)
	}
	return v
}

// factory is the engine's, with the edit.
func (b *bench) factory(twists ...twist) prunertest.Factory {
	f := factory(b.t, b.db, Options{}, b.forge)
	return func(ctx context.Context, fix prunertest.Fixture) (prunertest.Population, error) {
		for _, tw := range twists {
			tw.make(&fix)
		}
		p, err := f(ctx, fix)
		if sp, ok := p.(*schemaPopulation); ok {
			sp.edit = b.edit
		}
		return p, err
	}
}

// descending turns the index round: nothing but ORDER BY then gives the oldest first.
var descending = twist{"through an index that is turned round", func(fix *prunertest.Fixture) {
	fix.Index.DDL = strings.NewReplacer("(age, id)", "(age DESC, id DESC)", "(age)", "(age DESC)", "state, age, id", "state, age DESC, id DESC", "kind, age, id", "kind, age DESC, id DESC").Replace(fix.Index.DDL)
}}

// crowded adds an index that has the age, but not the order of the rows of one age.
var crowded = twist{"beside an index of the age alone", func(fix *prunertest.Fixture) { fix.Index.DDL += "; CREATE INDEX ON entries (age)" }}

// raced is one batch beside another session: what it does before and while the batch waits, and what must come of it.
func raced(name string, tables, rows string, s policy.Sweep, sql, end string, want pruner.Result, left string, opts ...func(*pgx.ConnConfig)) victim {
	return victim{name, func(ctx context.Context, b *bench) error {
		conn, other, watcher := b.db.Conn(b.t, append(opts, b.forge)...), b.db.Conn(b.t), b.db.Conn(b.t)
		b.db.Exec(b.t, "DROP TABLE IF EXISTS ev, runs, job")
		b.db.Exec(b.t, tables+rows)
		s.Timeouts.Lock = 5 * time.Second
		arms, err := Open(ctx, Conn(conn), s, Options{})
		if err != nil {
			return err
		}
		arms[0].edit = b.edit
		mustExec(b.t, other, begin+sql)
		batch := start(func() (pruner.Result, error) { return arms[0].Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 50}) })
		ended := false
		for deadline := time.Now().Add(patience); !ended && time.Now().Before(deadline); {
			var waits bool
			if err := watcher.QueryRow(ctx, "SELECT coalesce(wait_event_type = 'Lock', false) FROM pg_stat_activity WHERE pid = $1", conn.PgConn().PID()).Scan(&waits); err != nil {
				return err
			}
			ended = waits || len(batch.c) > 0
		}
		mustExec(b.t, other, end)
		res, err := batch.end(b.t)
		if err != nil {
			return err
		}
		if got := counts(res); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("the batch counted %+v; want %+v", got, want)
		}
		query := ownerSteps[len(ownerSteps)-1].sql
		if s.Name == "job" {
			query = jobSteps[len(jobSteps)-1].sql
		}
		if got := b.db.Text(b.t, strings.TrimSuffix(query, ";")); got != left {
			return fmt.Errorf("%q is left; want %q", got, left)
		}
		return nil
	}}
}

// plans holds every plan of one specimen's batches against the rules, on small tables. before changes the catalog for as
// long as that takes.
func plans(specimenName string, before string) victim {
	name := "the plans of " + specimenName
	if before != "" {
		name += ", with " + before
	}
	return victim{name, func(ctx context.Context, b *bench) error {
		db := plansDB.New(b.t)
		conn := db.Conn(b.t, b.forge)
		for _, sp := range specimens() {
			if sp.name != specimenName {
				continue
			}
			arm := sp.open(b.t, Conn(conn))
			p := planner{conn, arm}
			p.begin(b.t)
			defer p.end(b.t)
			if before != "" {
				mustExec(b.t, conn, before)
			}
			for name, s := range shapesOf(arm) {
				st := arm.render(s)
				st.sql = b.edit(s, st.sql)
				if err := p.prepare(ctx, name, st); err != nil {
					return err
				}
				for _, generic := range []bool{false, true} {
					e, err := p.explain(ctx, "FORMAT JSON", name, st, planValues(arm, 5000), generic)
					if err != nil {
						return err
					}
					for _, f := range planFaults(arm, s, e) {
						if before == "" || !strings.HasPrefix(f, "the range is read through the index") { // another index may do as well
							return fmt.Errorf("%s: %s", name, f)
						}
					}
				}
			}
			return nil
		}
		return fmt.Errorf("there is no specimen %s", specimenName)
	}}
}

var plansDB = pgtest.NewTemplate("plans", func(ctx context.Context, dsn string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	if err := c.PgConn().Exec(ctx, specimenSchema+rowSpecimenSchema+specimenRows(300)).Close(); err != nil {
		return err
	}
	return c.PgConn().Exec(ctx, "VACUUM ANALYZE").Close()
})

// costly holds the price of batches with the edit against what TestBatchesCostTheSame and its like ask for.
func costly(name string, limit int, gate bool, check func(*bench, *meter) error) victim {
	return victim{name, func(_ context.Context, b *bench) error {
		m := newMeter(b.t, costDB.New(b.t).Conn(b.t), runEvents(), Options{OneSweeper: gate}, limit)
		m.edit = b.edit
		return check(b, m)
	}}
}

var (
	flatCost = costly("batches cost the same beside an old snapshot", 1000, false, func(b *bench, m *meter) error {
		old, err := pgx.ConnectConfig(b.t.Context(), m.conn.Config())
		if err != nil {
			return err
		}
		defer func() { _ = old.Close(context.Background()) }()
		mustExec(b.t, old, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM runs")
		return flat(m.drain(b.t), m.limit)
	})
	loserCost = costly("a loser reads nothing", 1000, true, func(b *bench, m *meter) error {
		other, err := pgx.ConnectConfig(b.t.Context(), m.conn.Config())
		if err != nil {
			return err
		}
		defer func() { _ = other.Close(context.Background()) }()
		mustExec(b.t, other, fmt.Sprintf("SELECT pg_advisory_lock(%d)", m.arm.lockKey()))
		c, _, _, err := m.batch(b.t.Context(), m.arm.sweep.Since.UnixMicro())
		if err == nil && c.buffers > 0 {
			err = fmt.Errorf("it read %d buffers", c.buffers)
		}
		return err
	})
	loserGroup = costly("a loser reads nothing of a group", 1000, true, func(b *bench, m *meter) error {
		other, err := pgx.ConnectConfig(b.t.Context(), m.conn.Config())
		if err != nil {
			return err
		}
		defer func() { _ = other.Close(context.Background()) }()
		mustExec(b.t, other, fmt.Sprintf("SELECT pg_advisory_lock(%d)", m.arm.lockKey()))
		m.begin(b.t)
		defer m.end(b.t)
		s := shape{group: true}
		st := m.arm.render(s)
		st.sql = m.edit(s, st.sql)
		if err := m.prepare(b.t.Context(), "batch", st); err != nil {
			return err
		}
		e, err := m.explain(b.t.Context(), "ANALYZE, BUFFERS, WAL, FORMAT JSON", "batch", st, planValues(m.arm, m.limit), true)
		if err == nil && total(e).buffers > 0 {
			err = fmt.Errorf("it read %d buffers", total(e).buffers)
		}
		return err
	})
	probeCost = costly("an owner that was got is not asked again", 1000, false, func(b *bench, m *meter) error {
		c, _, _, err := m.batch(b.t.Context(), m.arm.sweep.Since.UnixMicro())
		if err == nil && c.buffers > 2350 {
			err = fmt.Errorf("a batch of 1000 rows read %d buffers", c.buffers)
		}
		return err
	})
)

// own is a table of a victim's own and its arm, with the edit.
func (b *bench) own(script string, s policy.Sweep, o Options, opts ...func(*pgx.ConnConfig)) (*Arm, error) {
	b.db.Exec(b.t, "DROP TABLE IF EXISTS child, thing, keeper, seen CASCADE; "+script)
	s.Name, s.Table, s.Age, s.Window = "thing", policy.Name{Schema: "public", Table: "thing"}, "at", policy.MustWindow(24*time.Hour)
	s.Timeouts.Lock = 200 * time.Millisecond
	arms, err := Open(b.t.Context(), Conn(b.db.Conn(b.t, append(opts, b.forge)...)), s, o)
	if err != nil {
		return nil, err
	}
	arms[0].edit = b.edit
	return arms[0], nil
}

// expect runs one batch of 50 and holds its counts.
func expect(ctx context.Context, a *Arm, want pruner.Result) error {
	res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 50})
	if err != nil {
		return err
	}
	res.Blocked = nil
	if got := counts(res); fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("the batch counted %+v; want %+v", got, want)
	}
	return nil
}

const things = `CREATE TABLE thing (id int PRIMARY KEY, keeper int, state text, at timestamptz NOT NULL); CREATE INDEX ON thing (at, id);
CREATE TABLE keeper (id int PRIMARY KEY, status text NOT NULL); INSERT INTO keeper VALUES (1, 'done'), (2, 'live'), (3, 'done');
INSERT INTO thing SELECT g, 1 + g % 2, 'done', '2020-01-01 00:00+00' FROM generate_series(1, 10) g;`

func keptThings() policy.Sweep {
	return policy.Sweep{Guard: policy.Guard{Owner: &policy.OwnerGuard{Table: policy.Name{Schema: "public", Table: "keeper"},
		Key: []policy.KeyPair{{Target: "keeper", Owner: "id"}}, Column: "status", Terminal: policy.Texts("done")}}}
}

var unguarded = policy.Sweep{Guard: policy.Guard{None: "nothing is owed here"}}

var (
	// heir makes the tables inheritance parents after they were inspected. The child's rows would be due, and have the
	// addresses of rows that are not.
	heir = victim{"the rows of an heir are nobody's", func(ctx context.Context, b *bench) error {
		a, err := b.own(things, keptThings(), Options{})
		if err != nil {
			return err
		}
		b.db.Exec(b.t, `CREATE TABLE child () INHERITS (thing); INSERT INTO child SELECT g, 1, 'done', '2020-01-01 00:00+00' FROM generate_series(100, 109) g;
CREATE TABLE grandchild () INHERITS (keeper); INSERT INTO grandchild VALUES (2, 'done')`)
		defer b.db.Exec(b.t, "DROP TABLE grandchild")
		err = expect(ctx, a, count(10, 5, 5, 0, 0, 0))
		if n := b.db.Int(b.t, "SELECT count(*) FROM child"); err == nil && n != 10 {
			err = fmt.Errorf("%d of the 10 rows of the heir are left", n)
		}
		return err
	}}
	heirSkipped = victim{"the rows of an heir are nobody's, skipping locked rows", func(ctx context.Context, b *bench) error {
		a, err := b.own(things, keptThings(), Options{})
		if err != nil {
			return err
		}
		b.db.Exec(b.t, `CREATE TABLE child () INHERITS (thing); INSERT INTO child SELECT g, 1, 'done', '2020-01-01 00:00+00' FROM generate_series(100, 109) g`)
		res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 50, Mode: pruner.SkipLocked})
		if err == nil && (res.Removed != 5 || res.Moved != 0 || res.Stuck != 0) {
			err = fmt.Errorf("the batch counted %+v", res)
		}
		return err
	}}
	vetoed = victim{"a row that a trigger keeps is stuck", func(ctx context.Context, b *bench) error {
		a, err := b.own(things+`CREATE OR REPLACE FUNCTION veto() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.id = 2 THEN RETURN NULL; END IF; RETURN OLD; END';
CREATE TRIGGER veto BEFORE DELETE ON thing FOR EACH ROW EXECUTE FUNCTION veto()`, keptThings(), Options{})
		if err != nil {
			return err
		}
		want := count(10, 4, 5, 0, 0, 0)
		want.Stuck = 1
		return expect(ctx, a, want)
	}}
	unlocked = victim{"no owner is locked but of rows that may go", func(ctx context.Context, b *bench) error {
		s := keptThings()
		s.Guard.State = &policy.StateGuard{Column: "state", Terminal: policy.Texts("done")}
		a, err := b.own(things+"INSERT INTO thing VALUES (20, 3, 'open', '2020-01-01 00:00+00')", s, Options{})
		if err != nil {
			return err
		}
		if err := expect(ctx, a, count(11, 5, 6, 0, 0, 0)); err != nil {
			return err
		}
		if got := b.db.Text(b.t, "SELECT string_agg(id::text, ' ' ORDER BY id) FROM keeper WHERE xmax::text <> '0'"); got != "1" {
			return fmt.Errorf("the owners %q were locked; want 1", got)
		}
		return nil
	}}
	busy = victim{"a loser is busy", func(ctx context.Context, b *bench) error {
		a, err := b.own(things, keptThings(), Options{OneSweeper: true})
		if err != nil {
			return err
		}
		other := b.db.Conn(b.t)
		defer func() { _ = other.Close(ctx) }()
		mustExec(b.t, other, fmt.Sprintf("SELECT pg_advisory_lock(%d)", a.lockKey()))
		res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 50})
		if err == nil && (!res.Busy || res.End || res.Examined > 0) {
			err = fmt.Errorf("it answered %+v", res)
		}
		return err
	}}
	hidden = victim{"row security is an error, not fewer rows", func(ctx context.Context, b *bench) error {
		pgtest.Role(b.t, "sabotage_sweeper", "login")
		a, err := b.own(things+"GRANT SELECT, UPDATE, DELETE ON thing TO sabotage_sweeper", unguarded, Options{}, func(c *pgx.ConnConfig) { c.User = "sabotage_sweeper" })
		if err != nil {
			return err
		}
		b.db.Exec(b.t, "ALTER TABLE thing ENABLE ROW LEVEL SECURITY; CREATE POLICY half ON thing USING (id < 5)")
		if res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 50}); err == nil {
			return fmt.Errorf("with a policy that hides rows it counted %+v", res)
		}
		return nil
	}}
	deferred = victim{"a deferred key speaks in the batch", func(ctx context.Context, b *bench) error {
		a, err := b.own(things+"CREATE TABLE child (thing int REFERENCES thing DEFERRABLE INITIALLY DEFERRED); INSERT INTO child VALUES (7)", unguarded, Options{})
		if err != nil {
			return err
		}
		res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 50})
		var refused *pruner.RefusedError
		var late *commitError
		if errors.As(err, &late) {
			return fmt.Errorf("it speaks at COMMIT: %w", err)
		}
		if !errors.As(err, &refused) || refused.Block.Constraint != "child_thing_fkey" {
			return fmt.Errorf("with a row referenced it counted %+v with the error %v; want a RefusedError", res, err)
		}
		return nil
	}}
	// settingsHold has a trigger write down what holds while rows are being removed.
	settingsHold = victim{"the settings are in force", func(ctx context.Context, b *bench) error {
		a, err := b.own(things+`CREATE TABLE seen AS SELECT name, setting FROM pg_settings WHERE false;
CREATE OR REPLACE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO seen SELECT name, setting FROM pg_settings; RETURN NULL; END';
CREATE TRIGGER look AFTER DELETE ON thing FOR EACH STATEMENT EXECUTE FUNCTION look()`, unguarded, Options{})
		if err != nil {
			return err
		}
		if err := expect(ctx, a, count(10, 10, 0, 0, 0, 0)); err != nil {
			return err
		}
		want := map[string]string{"synchronous_commit": "off", "row_security": "off", "statement_timeout": "30000", "lock_timeout": "200", "transaction_isolation": "read committed"}
		for _, p := range pins {
			want[p.name] = strings.Replace(p.value, "16MB", "16384", 1)
		}
		for name, setting := range want {
			if got := b.db.Text(b.t, "SELECT setting FROM seen WHERE name = $1", name); got != setting {
				return fmt.Errorf("%s is %s; want %s", name, got, setting)
			}
		}
		return nil
	}}
	slow = victim{"a batch ends with its statement timeout", func(ctx context.Context, b *bench) error {
		a, err := b.own(things+`CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1); RETURN NULL; END';
CREATE TRIGGER slow AFTER DELETE ON thing FOR EACH STATEMENT EXECUTE FUNCTION slow()`, unguarded, Options{})
		if err != nil {
			return err
		}
		res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 50, Timeout: 100 * time.Millisecond})
		var late *pruner.TimeoutError
		if !errors.As(err, &late) {
			return fmt.Errorf("a batch of a second with a timeout of a tenth counted %+v with the error %v", res, err)
		}
		return nil
	}}
	locked = victim{"a locked row is waited for no longer than the lock timeout", func(ctx context.Context, b *bench) error {
		s := unguarded
		s.Timeouts.Statement = 2 * time.Second
		a, err := b.own(things, s, Options{})
		if err != nil {
			return err
		}
		other := b.db.Conn(b.t)
		defer func() { _ = other.Close(ctx) }()
		mustExec(b.t, other, "BEGIN; SELECT FROM thing WHERE id = 3 FOR UPDATE")
		res, err := a.Prune(ctx, pruner.Batch{Cutoff: raceCutoff, Limit: 50})
		var late *pruner.LockTimeoutError
		if !errors.As(err, &late) {
			return fmt.Errorf("with a row locked it counted %+v with the error %v", res, err)
		}
		return nil
	}}
)

// The lines of a statement, over the tables of the conformance suite and of the races.
const (
	cursorLine = `(?m)^     AND e\."\w+" >= .*-- cursor\n`
	gateLine   = `     AND \(SELECT g\.ok FROM gate g\)\n`
	upperBound = `coalesce\(\(SELECT g\.at FROM edge g\), (\$\d+::timestamptz)\)`
)

// follow has the delete side go after a row to its new version, as one that names rows by key does. By address a new
// version is another row, so what asks age and state again is the second of two locks, and stands alone only like this
// (and on servers before the minor releases of recheck).
func follow(table string, key ...string) func(string) string {
	edit := followed(table, key...)
	return inQuery("gone", func(sql string) string {
		if !strings.Contains(sql, "d.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])") {
			return sql
		}
		return edit(sql)
	})
}

func clauses() []clause {
	const (
		tied     = "more equal ages than many limits"
		heldTied = "held rows among equal ages"
		once     = "no row is examined twice in a pass"
		oldest   = "oldest first"
		limit    = "the limit is never exceeded"
		owner    = "the owner's state guards"
		state    = "the row's own state guards"
		both     = "both guards must let go"
		only     = "only what only matches goes"
		skip     = "skipping locked rows removes what nobody holds"
	)
	aged := raced("an age that moves forward while the batch waits is kept", ownerTables, ownerRows, guardedEvents(),
		"UPDATE ev SET at = at + interval '500 hours' WHERE run = 'a' AND seq = 2", "COMMIT", count(22, 9, 5, 0, 1, 7), "-2 a1 c5 x5")
	undated := raced("an age that is lost while the batch waits is kept", ownerTables, ownerRows, guardedEvents(),
		"UPDATE ev SET at = '1970-01-01' WHERE run = 'a' AND seq = 2", "COMMIT", count(22, 9, 5, 0, 1, 7), "-2 a1 c5 x5")
	retried := raced("a state that changes while the batch waits is kept", jobTables, jobRows, doneJobs(),
		"UPDATE job SET state = 'available' WHERE id = 3", "COMMIT", count(5, 4, 0, 0, 1, 0), "3available 6live 7done")
	ageLed := strings.Replace(jobTables, "(state, fin) WHERE fin IS NOT NULL", "(fin, id)", 1)
	retriedByAge := raced("a state that changes while the batch waits is kept, through an index on the age", ageLed, jobRows, doneJobs(),
		"UPDATE job SET state = 'available' WHERE id = 3", "COMMIT", count(5, 4, 0, 0, 1, 0), "3available 6live 7done")
	reopened := raced("an owner that is being reopened keeps its rows", ownerTables, ownerRows, guardedEvents(),
		"UPDATE runs SET status = 'live' WHERE id = 'b'", "COMMIT", count(22, 5, 5, 5, 0, 7), "-2 b5 c5 x5")
	repeatable := raced("the session's isolation level is not the batch's", jobTables, jobRows, doneJobs(),
		"UPDATE job SET state = 'available' WHERE id = 3", "COMMIT", count(5, 4, 0, 0, 1, 0), "3available 6live 7done",
		func(c *pgx.ConnConfig) { c.RuntimeParams["default_transaction_isolation"] = "repeatable read" })
	cs := []clause{
		{name: "edge: cutoff", edit: inQuery("edge", re(`   WHERE e\."\w+" < \$1::timestamptz  -- cutoff`, "   WHERE $$1::timestamptz IS NOT NULL")), victim: conformance("any population")},
		{name: "edge: cursor", edit: inQuery("edge", re(cursorLine, "")), victim: conformance(once)},
		{name: "edge: equalities", edit: inQuery("edge", re(`     AND e\."kind" = .*\n`, "")), victim: plans("none", "")},
		{name: "edge: oldest first", edit: inQuery("edge", re(`ORDER BY e\."\w+" OFFSET`, "OFFSET")), victim: conformance(oldest, descending)},
		{name: "edge: limit", edit: inQuery("edge", re(`OFFSET (\S+)`, "OFFSET 1 + $1")), victim: conformance(limit)},
		{name: "edge: gate", edit: inQuery("edge", re(gateLine, "")), victim: loserCost},
		{name: "edge: ONLY", edit: inQuery("edge", re(`FROM ONLY`, "FROM")), victim: plans("owner", "CREATE TABLE heir () INHERITS (run_events)")},

		{name: "range: edge", edit: inQuery("(keys|tally)", re(upperBound, "$1")), victim: conformance(limit)},
		{name: "range: edge is exclusive", edit: inQuery("(keys|tally|picked)", re(`< coalesce`, "<= coalesce")), victim: conformance(once)},
		{name: "range: cutoff where there is no edge", edit: inQuery("(keys|tally)", re(upperBound, "(SELECT g.at FROM edge g)")), victim: conformance(oldest)},
		{name: "range: cursor", edit: inQuery("(keys|tally)", re(cursorLine, "")), victim: conformance(once)},
		{name: "range: cursor is inclusive", edit: inQuery("(keys|tally|picked)", re(`>= (\S+)  -- cursor`, "> $1")), victim: conformance(oldest)},
		{name: "range: the cursor's cost", edit: chain(inQuery("edge", re(cursorLine, "     AND $$2::timestamptz IS NOT NULL\n")), inQuery("keys", re(cursorLine, "")), inQuery("picked", re(cursorLine, "")),
			inQuery("gone", re(`     AND d\."\w+" >= .*\n`, ""))), victim: flatCost},
		{name: "range: equality of only", edit: inQuery("(keys|tally)", re(`     AND e\."kind" = .*\n`, "")), victim: conformance(only)},
		{name: "range: equality of the state", edit: inQuery("tally", re(`     AND e\."state" = .*\n`, "")), victim: conformance(state)},
		{name: "range: what a partial index settles", edit: inQuery("(edge|tally)", re(`     AND e\."state" IN .*\n`, "")), victim: plans("state_within", "")},
		{name: "range: gate", edit: inQuery("keys", re(gateLine, "")), victim: loserCost},
		{name: "range: ONLY", edit: inQuery("keys", re(`FROM ONLY`, "FROM")), victim: heir},
		{name: "range: only", edit: inQuery("(keys|tally)", re(` FILTER \(WHERE \(?(NOT )?coalesce\(e\."kind".*?\) AS (outside|candidates)`, " AS $2")), victim: conformance(only)},

		{name: "owners: the whole key, locked", edit: inQuery("owners", re(`WHERE r\."tenant" = k\.k0 AND r\."id" = k\.k1\n`, `WHERE r."id" = k.k1`+"\n")), victim: conformance("the owner's whole key counts")},
		{name: "owners: the whole key, asked", edit: inQuery("owners", re(`l\.got IS NULL AND r\."tenant" = k\.k0 AND`, "l.got IS NULL AND")), victim: conformance("the owner's whole key counts")},
		{name: "owners: terminal states", edit: inQuery("owners", re(`(?m)^.*-- guard\n`, "")), victim: conformance(owner)},
		{name: "owners: of rows that may go", edit: inQuery("owners", re(`k\.candidates > 0`, "true")), victim: unlocked},
		{name: "owners: lock", edit: inQuery("owners", re(` FOR SHARE SKIP LOCKED`, "")), victim: conformance("a locked owner keeps its rows")},
		{name: "owners: a lock that a reopening heeds", edit: inQuery("owners", re(`FOR SHARE SKIP LOCKED`, "FOR KEY SHARE SKIP LOCKED")), victim: reopened},
		{name: "owners: not waited for", edit: inQuery("owners", re(`FOR SHARE SKIP LOCKED`, "FOR SHARE")), victim: conformance("a locked owner keeps its rows")},
		{name: "owners: asked only where not got", edit: inQuery("owners", re(`l\.got IS NULL AND`, "")), victim: probeCost},
		{name: "owners: a null state", edit: inQuery("owners", re(`coalesce\((.*), false\) AS ok`, "$1 AS ok")), victim: conformance(owner)},
		{name: "owners: one probe an owner", edit: inQuery("owners", re(` OFFSET 0\)`, ")")), victim: plans("owner", "")},
		{name: "owners: one probe a final owner", edit: inQuery("owners", re(`candidates > 0 OFFSET 0\)`, "candidates > 0)")), victim: plans("owner_final", "")},
		{name: "owners: ONLY, locked", edit: inQuery("owners", re(`got FROM ONLY`, "got FROM")), victim: heir},
		{name: "owners: ONLY, asked", edit: inQuery("owners", re(`ok FROM ONLY`, "ok FROM")), victim: heir},

		{name: "tally: held", edit: inQuery("tally", re(`o\.got IS NULL AND NOT o\.ok`, "o.got IS NULL")), victim: conformance("orphans and ownerless rows stay")},
		{name: "tally: locked", edit: inQuery("tally", re(`o\.got IS NULL AND o\.ok\)`, "o.got IS NULL)")), victim: conformance("orphans and ownerless rows stay")},
		{name: "tally: orphan", edit: inQuery("tally", re(`o\.got IS NULL AND o\.ok IS NULL\)`, "o.got IS NULL)")), victim: conformance(owner)},
		{name: "tally: an empty range", edit: inQuery("tally", re(`coalesce\((sum\([^)]*\)), 0\)`, "$1")), victim: conformance("any population")},
		{name: "picked: an empty range", edit: inQuery("picked", re(`coalesce\(t\.tids, '\{\}'\)`, "t.tids")), victim: conformance(oldest)},
		{name: "each query by itself", edit: re(` MATERIALIZED`, ""), victim: plans("owner", "")},
		{name: "state: a null one", edit: re(`NOT coalesce\((e\."state" IN \(.*?\)), false\)`, "NOT ($1)"), victim: conformance(state)},
		{name: "state: terminal states", edit: chain(inQuery("tally", re(`array_agg\((e\.\w+)\) FILTER .*`, "array_agg($1) AS tids")), inQuery("gone", re(`(?m)^.*-- state, again\n`, ""))), victim: conformance(state)},
		{name: "state: a longer window", edit: re(` AND [ed]\."age" < \S+ - interval '\d+ seconds'`, ""), victim: conformance("states keep their own windows")},

		{name: "picked: edge", edit: inQuery("picked", re(upperBound, "$1")), victim: conformance(limit)},
		{name: "picked: cursor", edit: inQuery("picked", re(cursorLine, "")), victim: conformance("rows behind the cursor are found by the next drain")},
		{name: "picked: equality of only", edit: inQuery("picked", re(`     AND e\."kind" = .*\n`, "")), victim: conformance(only)},
		{name: "picked: own state", edit: inQuery("picked", re(`     AND coalesce\(e\."state" .*\n`, "")), victim: conformance(both)},
		{name: "picked: guard", edit: inQuery("picked", re(`(?m)^.*-- guard\n`, "")), victim: conformance(owner)},
		{name: "picked: of owners that were got", edit: inQuery("picked", re(` WHERE o\.got\)`, ")")), victim: conformance(owner)},
		{name: "picked: gate", edit: inQuery("picked", re(gateLine, "")), victim: loserCost},
		{name: "picked: ONLY", edit: inQuery("picked", re(`FROM ONLY`, "FROM")), victim: heir},

		{name: "skip: lock", edit: inQuery("mine", re(`     FOR UPDATE SKIP LOCKED\n`, "")), victim: conformance(skip)},
		{name: "skip: not waited for", edit: inQuery("mine", re(`FOR UPDATE SKIP LOCKED`, "FOR UPDATE")), victim: conformance(skip)},
		{name: "skip: by address", edit: inQuery("mine", re(`d\.ctid = ANY \(\(SELECT p\.tids FROM picked p\)::tid\[\]\)`, "true")), victim: conformance(skip)},
		{name: "skip: those that are ours", edit: inQuery("gone", re(`ARRAY\(SELECT m\.tid FROM mine m\)`, "(SELECT p.tids FROM picked p)::tid[]")), victim: conformance(skip)},
		{name: "skip: ONLY", edit: inQuery("mine", re(`FROM ONLY`, "FROM")), victim: heirSkipped},

		{name: "gone: by address", edit: inQuery("gone", re(`d\.ctid = ANY \(\(SELECT p\.tids FROM picked p\)::tid\[\]\)`, "true")), victim: conformance(owner)},
		{name: "gone: age, again", under: follow("ev", "run", "seq"), edit: inQuery("gone", re(`\(d\."at" < .*`, "(true")), victim: aged},
		{name: "gone: cursor, again", under: follow("ev", "run", "seq"), edit: inQuery("gone", re(`     AND d\."at" >= .*\n`, "")), victim: undated},
		{name: "gone: equality, again", under: follow("job", "id"), edit: inQuery("gone", re(`     AND d\."state" = .*\n`, "")), victim: retried},
		{name: "gone: state, again", under: follow("job", "id"), edit: inQuery("gone", re(`(?m)^.*-- state, again\n`, "")), victim: retriedByAge},
		{name: "gone: a filter, no range", edit: inQuery("gone", re(`\) IS TRUE`, ")")), victim: plans("owner", "")},
		{name: "gone: ONLY", edit: inQuery("gone", re(`FROM ONLY`, "FROM")), victim: heir},

		{name: "group: its age", edit: inQuery("seen", re(`(?m)^     AND e\."age" (<=|>=) .*\n`, "")), victim: conformance(tied)},
		{name: "group: its age, as a start", edit: inQuery("seen", re(`   WHERE e\."age" >= .*`, "   WHERE true")), victim: conformance(heldTied)},
		{name: "group: its age, without a key", edit: inQuery("seen", re(`   WHERE e\."age" = .*`, "   WHERE $$1::timestamptz IS NOT NULL")), victim: conformance(tied)},
		{name: "group: after the batch before", edit: inQuery("seen", re(`(?m)^   WHERE \(e\."age", (.*)\) > \((\S+), (.*)\)  -- .*`, `   WHERE e."age" >= $2 AND ($3) IS NOT NULL`)), victim: conformance(heldTied)},
		{name: "group: key order", edit: inQuery("seen", re(`(?m)^   ORDER BY .*\n`, "")), victim: conformance(tied, crowded)},
		{name: "group: equalities", edit: inQuery("seen", re(`     AND e\."state" = .*\n`, "")), victim: plans("state_arm", "")},
		{name: "group: ONLY", edit: inQuery("seen", re(`FROM ONLY`, "FROM")), victim: plans("state", "CREATE TABLE heir () INHERITS (jobs)")},
		{name: "group: gate", edit: inQuery("seen", re(gateLine, "")), victim: loserGroup},
		{name: "group: limit", edit: inQuery("seen", re(`LIMIT (\S+)`, "LIMIT 2 * $1")), victim: conformance(tied)},
		{name: "group: those that stayed", edit: inQuery("seen", re(`AND NOT \(e\.ctid = ANY \((\S+)\)\)`, "AND $1 IS NOT NULL")), victim: conformance(heldTied)},
		{name: "group: the last key", edit: re(`ORDER BY e\."id" DESC LIMIT 1\) AS last`, `ORDER BY e."id" LIMIT 1) AS last`), victim: conformance(heldTied)},
		{name: "group: stayed, not gone", edit: re(` EXCEPT SELECT g\.tid FROM gone g\) x\) AS last`, ") x) AS last"), victim: conformance(tied)},
		{name: "group: by two bounds", edit: inQuery("seen", re(`(?m)^   WHERE e\."(\w+)" [<>]= (\S+)  -- the group\n.*\n`, `   WHERE e."$1" = $2`+"\n")), victim: plans("none_gate", "UPDATE lines SET created_at = '2020-01-01'")},

		{name: "gate: try", edit: inQuery("gate", re(`pg_try_advisory_xact_lock\((-?\d+)\)`, "$1 <> 0")), victim: busy},
		{name: "gate: said", edit: re(`\(SELECT g\.ok FROM gate g\) AS ok`, "true AS ok"), victim: busy},

		{name: "stayed: handed on", edit: re(`set_config\('prunectl\.stayed', `, "set_config('prunectl.other', "), victim: vetoed},
		{name: "stayed: looked at again", wire: [2]string{"current_setting('prunectl.stayed'", "current_setting('prunectl.other'"}, victim: vetoed},

		{name: "transaction: isolation level", wire: [2]string{"BEGIN ISOLATION LEVEL READ COMMITTED", "BEGIN"}, victim: repeatable},
		{name: "transaction: immediate constraints", wire: [2]string{"SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS ALL DEFERRED"}, victim: deferred},
		{name: "settings: row_security", wire: [2]string{"'row_security', 'off'", "'row_security', 'on'"}, victim: hidden},
		{name: "settings: statement_timeout", wire: [2]string{"set_config('statement_timeout'", "set_config('my.timeout'"}, victim: slow},
		{name: "settings: lock_timeout", wire: [2]string{"set_config('lock_timeout'", "set_config('my.timeout'"}, victim: locked},
		{name: "settings: synchronous_commit", wire: [2]string{"'synchronous_commit', 'off'", "'synchronous_commit', 'on'"}, victim: settingsHold},
		{name: "settings: plan_cache_mode", wire: [2]string{"'force_generic_plan'", "'auto'"}, victim: settingsHold},
		{name: "settings: work_mem", wire: [2]string{"'16MB'", "'4MB'"}, victim: settingsHold},
		{name: "settings: jit", wire: [2]string{"'jit', 'off'", "'jit', 'on'"}, victim: settingsHold},
		{name: "settings: enable_mergejoin", wire: [2]string{"'enable_mergejoin', 'off'", "'enable_mergejoin', 'on'"}, victim: settingsHold},
		{name: "settings: enable_incremental_sort", wire: [2]string{"'enable_incremental_sort', 'off'", "'enable_incremental_sort', 'on'"},
			victim: plans("owner", "CREATE INDEX ON run_events (created_at)")},
		{name: "settings: max_parallel_workers_per_gather", wire: [2]string{"'max_parallel_workers_per_gather', '0'", "'max_parallel_workers_per_gather', '2'"},
			victim: plans("owner_final", "SET LOCAL cpu_tuple_cost = 10; SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_index_scan_size = 0; SET LOCAL min_parallel_table_scan_size = 0")},
	}
	for _, pin := range []string{"enable_seqscan", "enable_bitmapscan", "enable_nestloop", "enable_sort"} {
		cs = append(cs, clause{name: "settings: " + pin, wire: [2]string{"'" + pin + "', 'off'", "'" + pin + "', 'on'"}, victim: plans("owner", "")})
	}
	return append(append(append(cs, rowClauses()...), lookClauses()...), moreClauses()...)
}

// TestSabotage takes each clause out in turn, and has a named check notice. A check that stays green, and an edit that
// changes nothing, are a clause that nobody holds.
func TestSabotage(t *testing.T) {
	if testing.Short() {
		t.Skip("what a clause is there for does not depend on the server")
	}
	db := pgtest.New(t)
	sound := map[string]seen{}
	for _, c := range clauses() {
		t.Run(c.name, func(t *testing.T) {
			if sound[c.victim.name] == nil {
				saw := seen{}
				if err := c.victim.run(t.Context(), &bench{t: t, db: db, seen: saw}); err != nil {
					t.Fatalf("%q is red with nothing taken out: %v", c.victim.name, err)
				}
				sound[c.victim.name] = saw
			}
			b := &bench{t: t, db: db, clause: c}
			err := c.victim.run(t.Context(), b)
			switch {
			case !b.touched:
				t.Errorf("the edit changes no text (%v)", err)
			case err == nil:
				t.Errorf("%q stays green", c.victim.name)
			default:
				t.Logf("%q: %s", c.victim.name, strings.SplitN(err.Error(), "\n", 2)[0])
			}
		})
	}
	sabotaged.ordinary = sound
}
