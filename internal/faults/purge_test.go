package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/report"
)

const purgeFile = `version: 1
defaults: {schema: public}
purges:
  tenant:
    key: tenant
    tables:
      - {table: run_events}
      - {table: messages, column: org}
      - {table: orders, children: [{table: order_lines, key: {id: order_id}}]}
      - {table: runs}
`

// sqlTenant is a tenant whose name looks like SQL.
const sqlTenant = "'; DROP TABLE runs; --"

// rowsOfRun is how many rows a tenant has for each of its runs: 10 events, 4 messages, 4 lines, an order, the run.
const rowsOfRun = 20

// purger runs the command on one database.
type purger struct {
	t   *testing.T
	bin string
	db  *pgtest.DB
	dsn string
}

func newPurger(t *testing.T, bin string) *purger {
	db := load(t, "purges/tenants")
	return &purger{t, bin, db, db.DSN}
}

// fill gives each tenant its runs, with all that is of them. The rows of the tenants lie between one another.
func (p *purger) fill(runs map[string]int) {
	p.t.Helper()
	for name, n := range runs {
		p.db.Exec(p.t, "INSERT INTO runs SELECT $1, g FROM generate_series(1, $2::int) g", name, n)
	}
	p.db.Exec(p.t, `
CREATE TEMP TABLE mixed AS SELECT tenant, id, row_number() OVER (ORDER BY id, tenant) AS nr FROM runs;
INSERT INTO run_events SELECT tenant, id, seq FROM mixed, generate_series(1, 10) seq ORDER BY nr, seq;
INSERT INTO messages (org) SELECT tenant FROM mixed, generate_series(1, 4) n ORDER BY nr;
INSERT INTO orders SELECT nr, tenant FROM mixed;
INSERT INTO order_lines SELECT nr, n FROM mixed, generate_series(1, 4) n ORDER BY nr, n;
ALTER TABLE run_events ADD FOREIGN KEY (tenant, run_id) REFERENCES runs;
ALTER TABLE order_lines ADD FOREIGN KEY (order_id) REFERENCES orders;
CREATE INDEX orders_tenant ON orders (tenant);
ANALYZE runs, run_events, messages, orders, order_lines`)
}

// rows is how many rows the tables have of a tenant.
func (p *purger) rows(name string) int {
	p.t.Helper()
	return int(p.db.Int(p.t, `
SELECT (SELECT count(*) FROM runs WHERE tenant = $1) + (SELECT count(*) FROM run_events WHERE tenant = $1) + (SELECT count(*) FROM messages WHERE org = $1)
     + (SELECT count(*) FROM orders WHERE tenant = $1) + (SELECT count(*) FROM order_lines l JOIN orders o ON o.id = l.order_id WHERE o.tenant = $1)`, name))
}

// others is a checksum of all rows but those of a tenant: what they hold, where they are, and who wrote them.
func (p *purger) others(name string) string {
	p.t.Helper()
	return p.db.Text(p.t, `
SELECT string_agg(of || ' ' || n || ' ' || sum, ', ' ORDER BY of) FROM (
  SELECT of, count(*) AS n, sum(hashtextextended(concat_ws('|', at, xmin, row), 0)::numeric) AS sum FROM (
    SELECT 'runs' AS of, ctid AS at, xmin::text, x::text AS row FROM runs x WHERE tenant <> $1
    UNION ALL SELECT 'run_events', ctid, xmin::text, x::text FROM run_events x WHERE tenant <> $1
    UNION ALL SELECT 'messages', ctid, xmin::text, x::text FROM messages x WHERE org <> $1
    UNION ALL SELECT 'orders', ctid, xmin::text, x::text FROM orders x WHERE tenant <> $1
    UNION ALL SELECT 'order_lines', x.ctid, x.xmin::text, x::text FROM order_lines x JOIN orders o ON o.id = x.order_id WHERE o.tenant <> $1) r
  GROUP BY of) s`, name)
}

// start begins a run of the command for a tenant.
func (p *purger) start(file, name string, args ...string) *process {
	p.t.Helper()
	dir := p.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prunectl.yaml"), []byte(file), 0o600); err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	p.t.Cleanup(cancel)
	r := &process{cmd: exec.CommandContext(ctx, p.bin, append([]string{"purge", "--yes", "--tenant", name}, args...)...)}
	r.cmd.Dir = dir
	r.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "DATABASE_URL=" + p.dsn}
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	if err := r.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}

// end waits for the run and reads its receipt, which must be of the published schema.
func (p *purger) end(r *process, code int) *report.Purge {
	p.t.Helper()
	got := r.end(p.t)
	doc, _ := read(p.t, r.stdout.String())
	if got != code || doc == nil || doc.Purge == nil {
		p.t.Fatalf("exit code %d instead of %d\nstdout: %s\nstderr: %s", got, code, r.stdout.String(), r.stderr.String())
	}
	return doc.Purge
}

// purge runs the command to its end.
func (p *purger) purge(file, name string, code int) *report.Purge {
	p.t.Helper()
	return p.end(p.start(file, name, "-o", "json"), code)
}

// until waits for what the server comes to say.
func (p *purger) until(r *process, what string, query string, args ...any) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if p.db.Text(p.t, query, args...) == "t" {
			return
		}
	}
	p.t.Fatalf("not within a minute: %s\nstdout: %s\nstderr: %s", what, r.stdout.String(), r.stderr.String())
}

// say is what a receipt says of each table, as "removed late left".
func say(p *report.Purge) string {
	var all []string
	for _, t := range p.Tables {
		left := "-"
		if t.Left != nil {
			left = fmt.Sprint(*t.Left)
		}
		all = append(all, fmt.Sprintf("%s %d %d %s", strings.TrimPrefix(t.Table, "public."), t.Removed, t.Late, left))
	}
	return strings.Join(all, "; ")
}

func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "prunectl")
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/prunectl/prunectl/cmd/prunectl").CombinedOutput(); err != nil {
		t.Fatalf("build the command: %v\n%s", err, out)
	}
	return bin
}

// TestPurge removes tenants from real tables by the real command, while it is killed and while others write.
func TestPurge(t *testing.T) {
	bin := build(t)
	for _, c := range []struct {
		name string
		test func(*purger)
	}{
		{"killed twice on the way", killedTwice},
		{"rows that come meanwhile", comeMeanwhile},
		{"a writer that never stops", neverStops},
		{"a writer that has not committed", notCommitted},
		{"through a pooler", throughAPooler},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(newPurger(t, bin))
		})
	}
}

// killedTwice: a million rows over five tables, of tenants whose names differ by case, by a blank, or look like SQL. The
// process is killed twice after it has come forward; the third run completes, and no other row is touched.
func killedTwice(p *purger) {
	t, thousand := p.t, 1000
	if testing.Short() {
		thousand = 100
	}
	runs := map[string]int{"acme": 20 * thousand, "Acme": 10 * thousand, "acme ": 10 * thousand, sqlTenant: 2 * thousand}
	for i := range 8 {
		runs[fmt.Sprintf("tenant %d", i)] = thousand
	}
	p.fill(runs)
	// As large as they may be, whatever the machine does beside them.
	const limit = 2000
	file := purgeFile + fmt.Sprintf("    batch: {limit: %d, target: 5s}\n", limit)
	others, all := p.others("acme"), runs["acme"]*rowsOfRun
	if n := p.rows("acme"); n != all {
		t.Fatalf("%d rows instead of %d", n, all)
	}

	began := time.Now()
	kill := func(r *process) {
		t.Helper()
		if err := r.cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatalf("%v\n%s%s", err, r.stdout.String(), r.stderr.String())
		}
		if code := r.end(t); code != -1 {
			t.Fatalf("it ended by itself: exit code %d\n%s%s", code, r.stdout.String(), r.stderr.String())
		}
		// What it had begun ends on the server, one way or the other.
		p.until(r, "its connection is gone", string(isGone))
	}
	first := p.start(file, "acme")
	p.until(first, "a quarter of the events is gone", "SELECT NOT EXISTS (SELECT FROM run_events WHERE tenant = 'acme' AND run_id = $1)", runs["acme"]/4)
	kill(first)
	afterFirst := p.rows("acme")
	second := p.start(file, "acme")
	p.until(second, "messages go", "SELECT NOT EXISTS (SELECT FROM messages WHERE id = (SELECT $1::bigint))", p.db.Int(t, "SELECT min(id) FROM messages WHERE org = 'acme'"))
	kill(second)
	afterSecond := p.rows("acme")
	if afterFirst <= 0 || afterFirst >= all || afterSecond <= 0 || afterSecond >= afterFirst {
		t.Fatalf("of %d rows %d are left after the first kill and %d after the second", all, afterFirst, afterSecond)
	}
	receipt := p.purge(file, "acme", 0)
	took := time.Since(began)
	removed := 0
	for _, table := range receipt.Tables {
		removed += table.Removed
	}
	if removed != afterSecond || !receipt.Proved || receipt.Passes != 1 {
		t.Errorf("%d of %d rows are counted: %+v", removed, afterSecond, receipt)
	}
	if n := p.rows("acme"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if got := p.others("acme"); got != others {
		t.Errorf("rows of others:\n%s, and were\n%s", got, others)
	}
	// Every row went once, and no transaction took more than a batch.
	if got, want := p.db.Text(t, "SELECT string_agg(of || ' ' || n, ', ' ORDER BY of) FROM (SELECT of, sum(n) AS n FROM removals GROUP BY of) x"),
		fmt.Sprintf("messages %d, order_lines %d, orders %d, run_events %d, runs %d", all/5, all/5, all/20, all/2, all/20); got != want {
		t.Errorf("removed %s instead of %s", got, want)
	}
	most, transactions := p.db.Int(t, "SELECT max(n) FROM (SELECT sum(n) AS n FROM removals GROUP BY xid) x"), p.db.Int(t, "SELECT count(DISTINCT xid) FROM removals WHERE n > 0")
	if most != limit {
		t.Errorf("the largest transaction removed %d rows instead of %d", most, limit)
	}
	t.Logf("%d of %d rows in %s over three runs, %d transactions, the largest of %d rows; %d rows were left after the first kill, %d after the second",
		all, 50*thousand*rowsOfRun, took.Round(time.Millisecond), transactions, most, afterFirst, afterSecond)

	// And the one whose name is SQL, of which the others must not feel anything either.
	others = p.others(sqlTenant)
	receipt = p.purge(purgeFile, sqlTenant, 0)
	if receipt.Tenant != sqlTenant || p.rows(sqlTenant) != 0 || p.others(sqlTenant) != others || !receipt.Proved {
		t.Errorf("%+v", receipt)
	}
}

// gated makes each deletion of a run wait for an advisory lock, and a batch wait for longer than it would.
func (p *purger) gated() (file string) {
	p.db.Exec(p.t, `
CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(42); RETURN old; END $$;
CREATE TRIGGER gate BEFORE DELETE ON runs FOR EACH ROW EXECUTE FUNCTION gate()`)
	return purgeFile + "    timeouts: {statement: 2min, lock: 1min}\n"
}

// comeMeanwhile: while the last table waits, rows come into those that have had their turn. The look finds them, they are
// reported as late, and a second pass removes them.
func comeMeanwhile(p *purger) {
	t := p.t
	p.fill(map[string]int{"acme": 5, "Acme": 5})
	file, others := p.gated(), p.others("acme")
	gate := p.db.Conn(t)
	if _, err := gate.Exec(t.Context(), "SELECT pg_advisory_lock(42)"); err != nil {
		t.Fatal(err)
	}
	r := p.start(file, "acme", "-o", "json")
	p.until(r, "it waits in the last table", string(waitsForLock))
	p.db.Exec(t, "INSERT INTO messages (org) SELECT 'acme' FROM generate_series(1, 3); INSERT INTO orders VALUES (1000, 'acme'); INSERT INTO order_lines VALUES (1000, 1), (1000, 2); INSERT INTO messages (org) VALUES ('other')")
	if _, err := gate.Exec(t.Context(), "SELECT pg_advisory_unlock(42)"); err != nil {
		t.Fatal(err)
	}
	receipt := p.end(r, 0)
	if got, want := say(receipt), "run_events 50 0 0; messages 23 3 0; order_lines 22 2 0; orders 6 1 0; runs 5 0 0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if receipt.Stop != report.Purged || !receipt.Proved || receipt.Passes != 2 || p.rows("acme") != 0 {
		t.Errorf("%+v", receipt)
	}
	p.db.Exec(t, "DELETE FROM messages WHERE org = 'other'")
	if got := p.others("acme"); got != others {
		t.Errorf("rows of others:\n%s, and were\n%s", got, others)
	}
}

// neverStops: somebody goes on writing for the tenant, also ever larger keys of a table that is walked by key, and more of
// them than a batch takes. Each pass ends all the same. Two of them cannot end that, and nobody is told that they did.
func neverStops(p *purger) {
	t := p.t
	p.fill(map[string]int{"acme": 5, "Acme": 5})
	// Each batch of the last table takes so long that more comes meanwhile than it can remove.
	p.db.Exec(t, `
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END $$;
CREATE TRIGGER slow BEFORE DELETE ON runs FOR EACH STATEMENT EXECUTE FUNCTION slow()`)
	writer := p.db.Conn(t)
	larger := p.db.Conn(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 1000; ctx.Err() == nil; n += 20 {
			if _, err := larger.Exec(context.WithoutCancel(ctx), "INSERT INTO runs SELECT 'acme', $1::int + g FROM pg_sleep(0.02), generate_series(1, 20) g", n); err != nil {
				t.Errorf("the writer of larger keys: %v", err)
				return
			}
		}
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			if _, err := writer.Exec(context.WithoutCancel(ctx), "INSERT INTO messages (org) SELECT 'acme' FROM pg_sleep(0.002)"); err != nil {
				t.Errorf("the writer: %v", err)
				return
			}
		}
	})
	r := p.start(purgeFile+"    batch: {limit: 100, target: 5s}\n", "acme")
	code := r.end(t)
	stop()
	wg.Wait()
	text := r.stdout.String()
	if code != 1 {
		t.Errorf("exit code %d\n%s%s", code, text, r.stderr.String())
	}
	for _, want := range []string{`not purged "acme": `, "when all were looked at in one snapshot; run it again", "they came after the last pass had gone by", "found late, by the look after the first pass, and a second pass followed"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if p.rows("acme") == 0 {
		t.Error("nothing is left, so nothing was tried")
	}
	receipt := p.purge(purgeFile, "acme", 0) // the writer has stopped
	if !receipt.Proved || p.rows("acme") != 0 || p.rows("Acme") != 5*rowsOfRun {
		t.Errorf("%+v", receipt)
	}
}

// notCommitted: a transaction that has written and not committed is in no snapshot. The proof stands for what it saw, and
// names who may still bring rows.
func notCommitted(p *purger) {
	t := p.t
	p.fill(map[string]int{"acme": 5, "Acme": 5})
	conn := p.db.Conn(t)
	if _, err := conn.Exec(t.Context(), "SET application_name = 'importer'; BEGIN; INSERT INTO messages (org) VALUES ('acme')"); err != nil {
		t.Fatal(err)
	}
	reader := p.db.Conn(t)
	if _, err := reader.Exec(t.Context(), "BEGIN; SELECT count(*) FROM runs"); err != nil {
		t.Fatal(err)
	}
	receipt := p.purge(purgeFile, "acme", 0)
	if len(receipt.Writers) != 1 || receipt.Writers[0] != (report.PurgeWriter{PID: int(conn.PgConn().PID()), App: "importer", Table: "public.messages"}) {
		t.Errorf("writers: %+v", receipt.Writers)
	}
	if !receipt.Proved || p.rows("acme") != 0 {
		t.Errorf("%+v", receipt)
	}
	if _, err := conn.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	receipt = p.purge(purgeFile, "acme", 0)
	if got := say(receipt); got != "run_events 0 0 0; messages 1 0 0; order_lines 0 0 0; orders 0 0 0; runs 0 0 0" || len(receipt.Writers) != 0 {
		t.Errorf("%s\n%+v", got, receipt.Writers)
	}
}

// throughAPooler: a purge leaves nothing on the connection that the next one gets.
func throughAPooler(p *purger) {
	p.fill(map[string]int{"acme": 5, "Acme": 5, "acme ": 5})
	p.dsn = startPooler(p.t, p.db.DSN)
	pooled := p.dsn
	for name, params := range map[string]string{"acme": "", "acme ": "default_query_exec_mode=simple_protocol"} {
		p.dsn = withParams(pooled, params)
		receipt := p.purge(purgeFile, name, 0)
		if !receipt.Proved || p.rows(name) != 0 {
			p.t.Errorf("%+v", receipt)
		}
	}
	if n := p.rows("Acme"); n != 5*rowsOfRun {
		p.t.Errorf("%d rows", n)
	}
}
