package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	clausetext "github.com/prunectl/prunectl/internal/sabotage"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// purgeClause is a part of a statement of a purge, the edit that takes it out, and who must notice.
type purgeClause struct {
	name   string
	step   string // the statement
	edit   func(string) string
	victim purgeVictim
}

// purgeVictim is a check that is green while nothing is taken out.
type purgeVictim struct {
	name string
	run  func(context.Context, *purgeBench) error
}

// purgeBench is where a victim runs, with the edit in force.
type purgeBench struct {
	t       *testing.T
	db      *pgtest.DB
	admin   *pgx.Conn
	clause  purgeClause
	touched bool
	taken   map[piece]bool // what the edit took out
	seen    seen           // what runs while nothing is taken out
}

// statement has the edit, and says what it took.
func (b *purgeBench) statement(name, sql string) string {
	b.seen.saw(name, sql)
	if b.clause.edit == nil || b.clause.step != name {
		return sql
	}
	edited := b.clause.edit(sql)
	b.touched = b.touched || edited != sql
	for _, p := range clausetext.Taken(sql, edited, spelledPurge) {
		b.taken[piece{name, p}] = true
	}
	return edited
}

// spelledPurge writes a line as one of its kind, also what a purge alone has: a key of several columns, and a table of a
// chain that stands for all.
func spelledPurge(line string) string {
	line = spelled(line)
	for _, s := range purgeSpellings {
		line = s.what.ReplaceAllString(line, s.as)
	}
	return line
}

// open makes tables and opens the purge over them, with the edit.
func (b *purgeBench) open(script string, p policy.Purge, of string) (*Purge, error) {
	if _, err := b.admin.PgConn().Exec(b.t.Context(), emptied+script).ReadAll(); err != nil {
		return nil, err
	}
	p.Timeouts.Lock = 300 * time.Millisecond
	conn := b.db.Conn(b.t)
	i, err := InspectPurge(b.t.Context(), Conn(conn), p, of)
	if err != nil {
		return nil, err
	}
	opened, err := i.Open(Conn(conn))
	if err != nil {
		return nil, err
	}
	for _, s := range opened.steps {
		s.edit = b.statement
	}
	return opened, nil
}

// mixedRows are few rows for purgeTables: wide ones, so that the tables have pages, and an order with many lines.
const mixedRows = `
INSERT INTO runs SELECT t, g, repeat('n', 900) FROM generate_series(1, 20) g, unnest('{acme,other,aaa}'::text[]) t;
INSERT INTO marks SELECT id, tenant_id FROM runs; ALTER TABLE logs ADD pad text; INSERT INTO logs SELECT id, tenant_id, note FROM runs;
INSERT INTO orders SELECT g, CASE WHEN g % 2 = 0 THEN 'acme' WHEN g % 4 = 1 THEN 'aaa' ELSE 'other' END FROM generate_series(1, 40) g;
INSERT INTO lines SELECT g, 1 + g % 30 FROM generate_series(1, 60) g; INSERT INTO lines SELECT g, 40 FROM generate_series(61, 100) g; INSERT INTO lines SELECT g, 39 FROM generate_series(101, 120) g;
INSERT INTO parts SELECT 1 + g % 70, g FROM generate_series(1, 150) g; INSERT INTO parts SELECT 64, g FROM generate_series(200, 230) g;
INSERT INTO nodes SELECT g, CASE g % 2 WHEN 0 THEN 'acme' ELSE 'other' END, g FROM generate_series(1, 20) g;
`

const mixedLeft = `SELECT string_agg(x, ' ') FROM (SELECT count(*)::text FROM ONLY runs WHERE tenant_id <> 'acme' UNION ALL SELECT count(*)::text FROM ONLY marks WHERE tenant_id <> 'acme' UNION ALL SELECT count(*)::text FROM ONLY logs WHERE org <> 'acme'
UNION ALL SELECT count(*)::text FROM ONLY orders WHERE tenant_id <> 'acme' UNION ALL SELECT count(*) || '' FROM ONLY lines l JOIN ONLY orders o ON o.id = l.order_id WHERE o.tenant_id <> 'acme'
UNION ALL SELECT count(*) || '' FROM ONLY parts p JOIN ONLY lines l ON l.id = p.line_id JOIN ONLY orders o ON o.id = l.order_id WHERE o.tenant_id <> 'acme' UNION ALL SELECT count(*)::text FROM ONLY nodes WHERE tenant_id <> 'acme') y (x)`

// eachOnce runs one pass of each step over the mix, while rows of it are locked elsewhere or vetoed: each row of the tenant
// is examined once, what can go is gone, and nothing of the others.
func eachOnce(name, more string, stays map[string]int, limits ...int) purgeVictim {
	return purgeVictim{name, func(ctx context.Context, b *purgeBench) error {
		for _, limit := range limits {
			p, err := b.open(purgeTables+mixedRows+more, purgeOfAll(), "acme")
			if err != nil {
				return err
			}
			others := b.db.Text(b.t, mixedLeft)
			before, err := p.Look(ctx, 1000)
			if err != nil {
				return err
			}
			if got := fmt.Sprint(before.Left); got != fmt.Sprint(mixedCounts) {
				return fmt.Errorf("the look says %v", got)
			}
			if few, err := p.Look(ctx, 10); err != nil || fmt.Sprint(few.Left) != "[{10 true} {10 true} {10 true} {10 true} {10 true} {10 true} {10 false}]" {
				return fmt.Errorf("a look up to 10 says %v, %v", few.Left, err)
			}
			for i, s := range p.Steps() {
				ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
				sum, err := passOf(ctx, s, limit)
				cancel()
				stay := stays[s.Spec().Table.Table]
				if err != nil {
					return fmt.Errorf("%s, limit %d: %w", s.Spec().Table, limit, err)
				}
				if stay >= 0 && (sum.Examined != mixedCounts[i].Rows || sum.Removed != sum.Examined-stay || sum.Stuck != stay) {
					return fmt.Errorf("%s, limit %d: the pass counted %+v", s.Spec().Table, limit, sum)
				}
			}
			if left := b.db.Text(b.t, mixedLeft); left != others {
				return fmt.Errorf("of the others there are %s rows, not %s", left, others)
			}
		}
		return nil
	}}
}

var mixedCounts = []tenant.Left{{Rows: 20}, {Rows: 20}, {Rows: 20}, {Rows: 116}, {Rows: 70}, {Rows: 20}, {Rows: 10}}

// vetoes keep some rows of each table that is walked.
const vetoes = `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN CASE WHEN OLD.id % 3 = 0 THEN NULL ELSE OLD END; END';
CREATE FUNCTION keep_part() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN CASE WHEN OLD.n % 8 = 1 THEN NULL ELSE OLD END; END';
CREATE TRIGGER veto BEFORE DELETE ON runs FOR EACH ROW EXECUTE FUNCTION keep(); CREATE TRIGGER veto BEFORE DELETE ON marks FOR EACH ROW EXECUTE FUNCTION keep(); CREATE TRIGGER veto BEFORE DELETE ON logs FOR EACH ROW EXECUTE FUNCTION keep();
CREATE TRIGGER veto BEFORE DELETE ON parts FOR EACH ROW EXECUTE FUNCTION keep_part();`

// racing is one of the races of TestPurgeRaces.
func racing(name string) purgeVictim {
	n := slices.IndexFunc(openRaces, func(r purgeRace) bool { return r.name == name })
	since := n < 0
	races := openRaces
	if since {
		races = snapshotRaces
		n = slices.IndexFunc(snapshotRaces, func(r purgeRace) bool { return r.name == name })
	}
	c := races[n]
	return purgeVictim{"a race: " + name, func(ctx context.Context, b *purgeBench) error {
		p, err := b.open(shopTables+shopRows+c.before, shop(), "acme")
		if err != nil {
			return err
		}
		other, holder := b.db.Conn(b.t), b.db.Conn(b.t)
		defer func() { _, _ = other.Close(ctx), holder.Close(ctx) }()
		s := p.steps[c.step]
		if since {
			s.edit = func(name, sql string) string { return pausedPurge(name, b.statement(name, sql)) }
			mustExec(b.t, holder, "SELECT pg_advisory_lock(7)")
		} else {
			mustExec(b.t, other, begin+c.sql)
		}
		batch := stepUnderway(ctx, s, 50)
		if since {
			b.untilWaits(ctx, p, func() bool { return len(batch.c) > 0 })
			mustExec(b.t, other, begin+c.sql+"; COMMIT")
			mustExec(b.t, holder, "SELECT pg_advisory_unlock(7)")
		}
		res, err := batch.end(b.t)
		mustExec(b.t, other, "COMMIT")
		if err != nil {
			return err
		}
		res.Blocked = nil
		if got := counts(res); fmt.Sprint(got) != fmt.Sprint(c.want) {
			return fmt.Errorf("the batch counted %+v; want %+v", got, c.want)
		}
		if left, others := b.db.Text(b.t, shopLeft), b.db.Text(b.t, shopOthers); left != c.left || others != c.others {
			return fmt.Errorf("%q is left, and %q of the others", left, others)
		}
		return nil
	}}
}

// untilWaits returns when the purge waits for a lock, or is over.
func (b *purgeBench) untilWaits(ctx context.Context, p *Purge, over func() bool) {
	for end := time.Now().Add(patience); !over() && time.Now().Before(end); {
		var waits bool
		if err := b.admin.QueryRow(ctx, "SELECT coalesce(wait_event_type = 'Lock', false) FROM pg_stat_activity WHERE pid = $1", p.db.conn.PgConn().PID()).Scan(&waits); err != nil || waits {
			return
		}
	}
}

// newReference has another tenant's row begin to refer to a row that is locked already.
var newReference = purgeVictim{"a reference to a row that is locked has to wait", func(ctx context.Context, b *purgeBench) error {
	p, err := b.open(shopTables+shopRows+"DELETE FROM lines; DELETE FROM returns;", shop(), "acme")
	if err != nil {
		return err
	}
	holder, other := b.db.Conn(b.t), b.db.Conn(b.t)
	defer func() { _, _ = other.Close(ctx), holder.Close(ctx) }()
	mustExec(b.t, holder, "SELECT pg_advisory_lock(7)")
	mustExec(b.t, other, "SET lock_timeout = '100ms'")
	s := p.steps[stepOrders]
	s.purge.Timeouts.Lock = patience
	s.edit = func(name, sql string) string {
		if sql = b.statement(name, sql); name == "delete" { // between its snapshot and what it does
			sql = strings.Replace(sql, " WHERE d.ctid", " WHERE (SELECT pg_advisory_xact_lock(7)) IS NOT NULL AND d.ctid", 1)
		}
		return sql
	}
	batch := stepUnderway(ctx, s, 50)
	b.untilWaits(ctx, p, func() bool { return len(batch.c) > 0 })
	_, err = other.Exec(ctx, "INSERT INTO returns VALUES (212, 'other', 2)")
	mustExec(b.t, holder, "SELECT pg_advisory_unlock(7)")
	res, lost := batch.end(b.t)
	switch {
	case err == nil || !strings.Contains(err.Error(), "lock timeout"):
		return fmt.Errorf("the insert says %v", err)
	case lost != nil || res.Removed != 3:
		return fmt.Errorf("%+v, %v", res, lost)
	}
	return nil
}}

// shut has another purge of the tenant hold the gate.
var shut = purgeVictim{"another purge of the tenant is under way", func(ctx context.Context, b *purgeBench) error {
	p, err := b.open(purgeTables+mixedRows, purgeOfAll(), "acme")
	if err != nil {
		return err
	}
	holder := b.db.Conn(b.t)
	defer func() { _ = holder.Close(ctx) }()
	mustExec(b.t, holder, fmt.Sprintf("BEGIN; SELECT pg_advisory_xact_lock(%d)", p.steps[0].gate))
	for _, s := range p.Steps() {
		for _, at := range []string{"", `{"begun":true,"key":["0"]}`, `{"begun":true,"one":["40"]}`} {
			res, err := s.Remove(ctx, tenant.Batch{Limit: 50, After: pruner.NewCursor(at)})
			if err != nil || !res.Busy {
				return fmt.Errorf("%s: %+v, %v", s.Spec().Table, res, err)
			}
		}
	}
	if left, err := p.Look(ctx, 1000); err != nil || fmt.Sprint(left.Left) != fmt.Sprint(mixedCounts) {
		return fmt.Errorf("%v are left, %v", left.Left, err)
	}
	return nil
}}

// purgedHeirs makes the tables inheritance parents after they were inspected. The heirs' rows have the addresses of others.
var purgedHeirs = purgeVictim{"the rows of heirs are nobody's", func(ctx context.Context, b *purgeBench) error {
	p, err := b.open(purgeTables+mixedRows, purgeOfAll(), "acme")
	if err != nil {
		return err
	}
	mustExec(b.t, b.admin, `CREATE TABLE rh () INHERITS (runs); INSERT INTO rh SELECT 'acme', g FROM generate_series(1, 20) g; CREATE TABLE mh () INHERITS (marks); INSERT INTO mh SELECT g, 'acme' FROM generate_series(1, 60) g;
CREATE TABLE lh () INHERITS (logs); INSERT INTO lh SELECT g, 'acme' FROM generate_series(1, 60) g; CREATE TABLE oh () INHERITS (orders); INSERT INTO oh SELECT g, 'acme' FROM generate_series(1, 40) g;
CREATE TABLE ih () INHERITS (lines); INSERT INTO ih SELECT g, 1 + g % 40 FROM generate_series(1, 120) g; CREATE TABLE ph () INHERITS (parts); INSERT INTO ph SELECT g, g FROM generate_series(1, 180) g;
CREATE TABLE nh () INHERITS (nodes); INSERT INTO nh SELECT g + 100, 'acme', g FROM generate_series(1, 20) g`)
	const heirs = "SELECT concat_ws(' ', (SELECT count(*) FROM rh), (SELECT count(*) FROM mh), (SELECT count(*) FROM lh), (SELECT count(*) FROM oh), (SELECT count(*) FROM ih), (SELECT count(*) FROM ph), (SELECT count(*) FROM nh))"
	had, others := b.db.Text(b.t, heirs), b.db.Text(b.t, mixedLeft)
	if left, err := p.Look(ctx, 1000); err != nil || fmt.Sprint(left.Left) != fmt.Sprint(mixedCounts) {
		return fmt.Errorf("the look says %v, %v", left.Left, err)
	}
	for _, s := range p.Steps() {
		sum, err := passOf(ctx, s, 9)
		if err != nil || sum.Stuck > 0 || sum.Moved > 0 || sum.Locked != 0 {
			return fmt.Errorf("%s: %+v, %v", s.Spec().Table, sum, err)
		}
	}
	if now := b.db.Text(b.t, heirs); now != had {
		return fmt.Errorf("of the heirs' rows %s are left, not %s", now, had)
	}
	if now := b.db.Text(b.t, mixedLeft); now != others {
		return fmt.Errorf("of the others' rows %s are left, not %s", now, others)
	}
	return nil
}}

// grandchildren have their row's row, or their row, on its way to another tenant.
var grandchildren = purgeVictim{"the row of a grandchild's row moves", func(ctx context.Context, b *purgeBench) error {
	for _, sql := range []string{"UPDATE orders SET tenant_id = 'other' WHERE id = 40", "UPDATE lines SET order_id = 39 WHERE id = 64"} {
		p, err := b.open(purgeTables+mixedRows, purgeOfAll(), "acme")
		if err != nil {
			return err
		}
		other := b.db.Conn(b.t)
		mustExec(b.t, other, begin+sql)
		sum, err := passOf(ctx, p.Steps()[3], 20)
		mustExec(b.t, other, "COMMIT")
		_ = other.Close(ctx)
		if kept := b.db.Int(b.t, "SELECT count(*) FROM parts WHERE line_id = 64"); err != nil || kept != 33 || sum.Locked == 0 || sum.Removed+sum.Locked != 116 {
			return fmt.Errorf("%s: %+v, %v; %d parts of line 64 are left", sql, sum, err, kept)
		}
	}
	return nil
}}

// saysWhy holds what is said of what stays.
var saysWhy = purgeVictim{"what keeps a row is said", func(ctx context.Context, b *purgeBench) error {
	p, err := b.open(shopTables+shopRows+`CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.id IN (3, 102) THEN RETURN NULL; END IF; RETURN OLD; END';
CREATE TRIGGER veto BEFORE DELETE ON orders FOR EACH ROW EXECUTE FUNCTION keep(); CREATE TRIGGER vetoed BEFORE DELETE ON lines FOR EACH ROW EXECUTE FUNCTION keep(); INSERT INTO returns VALUES (212, 'other', 2)`, shop(), "acme")
	if err != nil {
		return err
	}
	sums, err := purgeAll(ctx, p, 2)
	if err != nil {
		return err
	}
	want := "[{vetoed public.lines 1}] [{lines_order_id_fkey public.lines 1} {returns_order_id_fkey public.returns 1} {veto public.orders 1}]"
	if got := fmt.Sprint(sums[stepLines].Blocked, sums[stepOrders].Blocked); got != want {
		return fmt.Errorf("it names %s", got)
	}
	if others := b.db.Text(b.t, shopOthers); others != "l111 l112 o11 o12 r211 r212" {
		return fmt.Errorf("of the others %s is left", others)
	}
	return nil
}}

// inForceOf holds what is set in a batch: as a trigger sees it, and as a lock and a slow trigger find out.
var inForceOf = purgeVictim{"what is set in a batch", func(ctx context.Context, b *purgeBench) error {
	p := purgeOf("users")
	p.Set = []policy.Setting{{Name: "app.purging", Value: "yes"}}
	p.Timeouts.Statement = 3 * time.Second
	opened, err := b.open(`CREATE TABLE users (tenant_id text, id int, PRIMARY KEY (tenant_id, id)); INSERT INTO users VALUES ('acme', 1), ('acme', 2); CREATE TABLE said (what text);
CREATE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO said SELECT concat_ws(' ', current_setting('synchronous_commit'), current_setting('app.purging', true), current_setting('row_security'), current_setting('statement_timeout'), current_setting('lock_timeout')); RETURN NULL; END$$;
CREATE TRIGGER say BEFORE DELETE ON users FOR EACH ROW EXECUTE FUNCTION say()`, p, "acme")
	if err != nil {
		return err
	}
	for in, want := range map[string]string{"off": "on yes off 3s 300ms", "local": "on yes off 3s 300ms", "remote_apply": "remote_apply yes off 3s 300ms"} {
		mustExec(b.t, b.admin, "TRUNCATE said")
		mustExec(b.t, opened.db.conn, "SET synchronous_commit = "+in)
		if _, err := passOf(ctx, opened.Steps()[0], 5); err != nil {
			return err
		}
		if got := b.db.Text(b.t, "SELECT string_agg(DISTINCT what, ',') FROM said"); got != want {
			return fmt.Errorf("in force is %s, not %s", got, want)
		}
	}
	return nil
}}

// turning has rows that refer to themselves, and others in chains.
var turning = purgeVictim{"rows that refer to each other", func(ctx context.Context, b *purgeBench) error {
	p, err := b.open(purgeTables+"INSERT INTO nodes VALUES (1, 'acme', 1), (2, 'acme', NULL), (3, 'acme', 2), (4, 'acme', 3), (5, 'other', 4)", purgeOfNodes(), "acme")
	if err != nil {
		return err
	}
	sums, err := purgeAll(ctx, p, 10)
	if left := b.db.Text(b.t, "SELECT string_agg(id::text, ' ' ORDER BY id) FROM nodes"); err != nil || left != "2 3 4 5" || fmt.Sprint(sums[0].Blocked) != "[{nodes_up_fkey public.nodes 3}]" {
		return fmt.Errorf("%s are left, %+v, %v", left, sums[0], err)
	}
	return nil
}}

// fewPages holds that a batch of few rows reads few pages.
var fewPages = purgeVictim{"a batch of few rows reads few pages", func(ctx context.Context, b *purgeBench) error {
	p, err := b.open(`CREATE TABLE logs (org text, note text); INSERT INTO logs SELECT CASE g WHEN 1000 THEN 'acme' ELSE 'other' END, repeat('n', 1900) FROM generate_series(1, 1200) g`, purgeOf("logs org"), "acme")
	if err != nil {
		return err
	}
	conn, bill := billed(b.t, b.db)
	defer func() { _ = conn.Close(ctx) }()
	p.db.conn = conn
	var at pruner.Cursor
	for n := 0; ; n++ {
		bill.take()
		res, err := p.Steps()[0].Remove(ctx, tenant.Batch{Limit: 50, After: at})
		if c := bill.take(); err != nil || c.buffers > 75 || n > 10 {
			return fmt.Errorf("batch %d read %d buffers, %v", n, c.buffers, err)
		}
		if at = res.Next; res.End {
			if n := b.db.Int(b.t, "SELECT count(*) FROM logs WHERE org = 'acme'"); n > 0 {
				return fmt.Errorf("%d rows are left", n)
			}
			return nil
		}
	}
}}

// stepped holds that what is stepped over is counted and passed.
var stepped = purgeVictim{"rows are stepped over", func(ctx context.Context, b *purgeBench) error {
	p, err := b.open(purgeTables+mixedRows, purgeOfAll(), "acme")
	if err != nil {
		return err
	}
	for i, s := range p.Steps() {
		var at pruner.Cursor
		stuck := 0
		for n := 0; ; n++ {
			res, err := s.Remove(ctx, tenant.Batch{Limit: 6, After: at, Mode: pruner.StepStuck})
			if err != nil || n > 200 {
				return errors.Join(fmt.Errorf("%s: batch %d", s.Spec().Table, n), err)
			}
			stuck += res.Stuck
			if at = res.Next; res.End {
				break
			}
		}
		if stuck != mixedCounts[i].Rows {
			return fmt.Errorf("%s: %d rows were stepped over", s.Spec().Table, stuck)
		}
	}
	return nil
}}

// purgeChunks empties one row of many, some of which stay, by their key: each is examined once.
var purgeChunks = purgeVictim{"a row with many, some of which stay", func(ctx context.Context, b *purgeBench) error {
	p, err := b.open(shopTables+"INSERT INTO orders SELECT g, 'acme' FROM generate_series(1, 30) g; INSERT INTO lines SELECT g, 2 FROM generate_series(1, 40) g; INSERT INTO lines SELECT g + 100, 1 + g % 30 FROM generate_series(1, 60) g;"+
		"CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN CASE WHEN OLD.id % 3 = 0 THEN NULL ELSE OLD END; END'; CREATE TRIGGER veto BEFORE DELETE ON lines FOR EACH ROW EXECUTE FUNCTION keep()", shop(), "acme")
	if err != nil {
		return err
	}
	sum, err := passOf(ctx, p.Steps()[stepLines], 7)
	if err != nil || sum.Examined != 100 || sum.Removed != 67 || sum.Stuck != 33 {
		return fmt.Errorf("%+v, %v", sum, err)
	}
	return nil
}}

// lockedElsewhere has a row of the tenant locked that no row of the batch goes by.
var lockedElsewhere = purgeVictim{"a row that has no other", func(ctx context.Context, b *purgeBench) error {
	p, err := b.open(shopTables+shopRows, shop(), "acme")
	if err != nil {
		return err
	}
	holder, other := b.db.Conn(b.t), b.db.Conn(b.t)
	defer func() { _, _ = other.Close(ctx), holder.Close(ctx) }()
	mustExec(b.t, holder, "SELECT pg_advisory_lock(7)")
	mustExec(b.t, other, "SET lock_timeout = '100ms'")
	s := p.steps[stepLines]
	s.purge.Timeouts.Lock = patience
	s.edit = func(name, sql string) string {
		if name == "after" {
			return strings.Replace(sql, "SELECT count(*) AS left", "SELECT count(*) + 0 * (SELECT length(pg_advisory_xact_lock(7)::text)) AS left", 1)
		}
		return b.statement(name, sql)
	}
	batch := stepUnderway(ctx, s, 50)
	b.untilWaits(ctx, p, func() bool { return len(batch.c) > 0 })
	_, err = other.Exec(ctx, "UPDATE orders SET tenant_id = tenant_id WHERE id = 3")
	mustExec(b.t, holder, "SELECT pg_advisory_unlock(7)")
	if _, lost := batch.end(b.t); lost != nil || err != nil {
		return fmt.Errorf("order 3, which has no line, is locked: %w", errors.Join(err, lost))
	}
	return nil
}}

// selfVetoed has a row that refers to itself alone, and that a trigger keeps.
var selfVetoed = purgeVictim{"a row that refers to itself, and is vetoed", func(ctx context.Context, b *purgeBench) error {
	p, err := b.open(purgeTables+"INSERT INTO nodes VALUES (3, 'acme', 3);"+strings.ReplaceAll(vetoes, "ON runs", "ON nodes"), purgeOfNodes(), "acme")
	if err != nil {
		return err
	}
	sum, err := passOf(ctx, p.Steps()[0], 10)
	if err != nil || fmt.Sprint(sum.Blocked) != "[{veto public.nodes 1}]" {
		return fmt.Errorf("%+v, %v", sum, err)
	}
	return nil
}}

// purgeOfNodes leaves the other tables out.
func purgeOfNodes() policy.Purge {
	return excluding(purgeOf("nodes"), "runs", "marks", "orders")
}
