package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/prunectl/prunectl/internal/report"
)

// TestPurgeUnderASignal: the batch in hand ends, the receipt says exactly what went, no look is claimed, and the next run
// completes.
func TestPurgeUnderASignal(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		name   string
		code   int
	}{{syscall.SIGTERM, "SIGTERM", 143}, {syscall.SIGINT, "SIGINT", 130}, {syscall.SIGHUP, "SIGHUP", 129}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const runs = 60
			db := tenants.New(t)
			addTenants(t, db)
			addTenant(t, db, "big", runs)
			slowPurge(t, db, "run_events", 10)
			others := othersRows(t, db, "big")
			policy := purgesOf(tenantPurge + "    batch: {limit: 10}\n")
			args := []string{"purge", "--tenant", "big", "--yes"}
			r := invocation{args: append(args, "-o", "json"), env: at(db), policy: policy}.start(t)
			eventually(t, "a batch is committed", func() bool { return tenantRows(t, db, "big") < runs*rowsOfRun })
			r.signal(c.signal)
			o := r.wait().must(t, c.code)
			doc := o.document(t)
			p, left := purgeOf(t, doc), tenantRows(t, db, "big")
			if doc.Totals.Removed != runs*rowsOfRun-left || left == 0 || p.Stop != report.Signal || p.Proved || p.LookedAt != nil || p.Error != nil || p.Tables[0].Left != nil {
				t.Errorf("%d of %d rows are gone, and the receipt says %d in %+v", runs*rowsOfRun-left, runs*rowsOfRun, doc.Totals.Removed, p)
			}
			contains(t, o.stderr, "prunectl: "+c.name+": ending", "stopped by "+c.name)
			o = invocation{args: args, env: at(db), policy: policy}.run(t).must(t, exitDone)
			contains(t, o.stdout, fmt.Sprintf(`purged "big": %d rows of 5 tables; none was left at `, left))
			if got := othersRows(t, db, "big"); got != others || tenantRows(t, db, "big") != 0 {
				t.Errorf("the rows of others were %s and are %s", others, got)
			}
		})
	}
}

// TestPurgeUnderTwoSignals: the second one cancels the batch in hand, and that batch is not counted.
func TestPurgeUnderTwoSignals(t *testing.T) {
	db := tenants.New(t)
	addTenant(t, db, "big", 100)
	slowPurge(t, db, "run_events", 2000)
	r := invocation{args: strings.Fields("purge --tenant big --yes"), env: at(db), policy: purgesOf(tenantPurge + "    timeouts: {statement: 10min}\n")}.start(t)
	deleting := func() bool {
		return db.Int(t, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'prunectl' AND state = 'active' AND wait_event = 'PgSleep' AND datname = current_database()") > 0
	}
	eventually(t, "the batch is under way", deleting)
	r.signal(syscall.SIGINT)
	eventually(t, "the first signal is heard", func() bool { return strings.Contains(r.said(), "SIGINT: ending") })
	r.signal(syscall.SIGINT)
	o := r.wait().must(t, 130)
	contains(t, o.stdout, `not purged "big": SIGINT; 0 rows of 5 tables went`)
	if left := tenantRows(t, db, "big"); left != 100*rowsOfRun {
		t.Errorf("%d rows are left", left)
	}
}

// TestPurgeBusy: another run purges the same tenant. The loser says so and touches nothing; other tenants are nobody's
// business.
func TestPurgeBusy(t *testing.T) {
	db := tenants.New(t)
	addTenants(t, db)
	addTenant(t, db, "big", 30)
	slowPurge(t, db, "run_events", 30)
	policy := purgesOf(tenantPurge + "    batch: {limit: 50}\n")
	run := func(tenant string) invocation {
		return invocation{args: []string{"purge", "--yes", "--tenant", tenant}, env: at(db), policy: policy}
	}
	first := run("big").start(t)
	eventually(t, "the first run deletes", func() bool {
		return db.Int(t, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'prunectl' AND wait_event = 'PgSleep' AND datname = current_database()") > 0
	})
	o := run("big").run(t).must(t, exitBusy)
	contains(t, o.stdout, `not purged "big": another run purges this tenant; 0 rows of 5 tables went in this one`)
	contains(t, o.stderr, "purge tenant busy (exit 5)")
	contains(t, run("acme").run(t).must(t, exitDone).stdout, `purged "acme": 32 rows of 5 tables`)
	contains(t, first.wait().must(t, exitDone).stdout, `purged "big": 240 rows of 5 tables`)
}

// TestPurgeMeetsLocks: rows that another session holds are left, which is no success, and a next run takes them. What that
// session wrote and did not commit is named.
func TestPurgeMeetsLocks(t *testing.T) {
	db := tenants.New(t)
	addTenants(t, db)
	conn := db.Conn(t)
	if _, err := conn.Exec(t.Context(), "SET application_name = 'worker'"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "BEGIN; UPDATE messages SET org = org WHERE org = 'acme'; INSERT INTO messages (org) VALUES ('acme')"); err != nil {
		t.Fatal(err)
	}
	pid := conn.PgConn().PID()
	open := fmt.Sprintf(`1 transaction that has written to public.messages was open: pid %d ("worker"); what it commits is not in this look`, pid)
	o := invocation{args: []string{"purge", "--tenant", "acme", "--dry-run"}, env: at(db), policy: purgesOf(tenantPurge)}.run(t).must(t, exitDone)
	contains(t, o.stdout, open)
	in := invocation{args: []string{"purge", "--tenant", "acme", "--yes"}, env: at(db), policy: purgesOf(tenantPurge)}
	o = in.run(t).must(t, exitFailed)
	contains(t, o.stderr, open) // who is asked is told, too
	contains(t, o.stdout, `not purged "acme": 28 rows of 5 tables went, and 4 rows were left at `, "public.messages: 4 locked by other sessions", open)
	contains(t, o.stderr, "purge tenant left rows (exit 1)")
	if _, err := conn.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	contains(t, in.run(t).must(t, exitDone).stdout, `purged "acme": 5 rows of 5 tables`)
}

// TestPurgeQuiet is what cron mails: nothing where all is gone, else the whole of it. Who has written and not committed is
// worth a mail too: the proof does not cover it.
func TestPurgeQuiet(t *testing.T) {
	db := tenants.New(t)
	addTenants(t, db)
	db.Exec(t, "CREATE INDEX ON messages (org); ANALYZE")
	run := func(tenant, policy string, code int) outcome {
		t.Helper()
		return invocation{args: []string{"purge", "-q", "--yes", "--tenant", tenant}, env: at(db), policy: policy}.run(t).must(t, code)
	}
	if o := run("acme", purgesOf(tenantPurge), exitDone); o.both() != "" {
		t.Errorf("printed: %s", o.both())
	}
	contains(t, run("Acme", purgesOf(wrongOrder), exitRefused).both(), "database ", "refused", "(exit 4)")
	conn := db.Conn(t)
	if _, err := conn.Exec(t.Context(), "BEGIN; INSERT INTO messages (org) VALUES ('x')"); err != nil {
		t.Fatal(err)
	}
	contains(t, run("Acme", purgesOf(tenantPurge), exitDone).both(), `purged "Acme": 40 rows of 5 tables`, "1 transaction that has written to public.messages was open", "msg=end purge=tenant removed=40 passes=1")
}

// TestPurgeLog: as records, every line of stderr is one.
func TestPurgeLog(t *testing.T) {
	db := tenants.New(t)
	addTenants(t, db)
	o := invocation{args: strings.Fields("purge --yes --tenant acme --log-format json"), env: at(db), policy: purgesOf(tenantPurge)}.run(t).must(t, exitDone)
	for line := range strings.Lines(o.stderr) {
		if !strings.HasPrefix(line, `{"time":"`) {
			t.Errorf("no record: %s", line)
		}
	}
	contains(t, o.stderr, `"msg":"all rows of \"acme\" are to go from these tables:"`, `"msg":"start","purge":"tenant"`, `"msg":"end","purge":"tenant","removed":32,"passes":1`)
}

// TestScreensOfPurges holds what a person sees of purges, and what a program reads.
func TestScreensOfPurges(t *testing.T) {
	db := tenants.New(t)
	addTenants(t, db)
	db.Exec(t, "ANALYZE")
	hold(t, db, purgesOf(wrongOrder), []screen{{"purge_refused", "purge --tenant acme --yes", exitRefused}, {"purge_check", "check", exitRefused}})
	hold(t, db, purgesOf(tenantPurge), []screen{
		{"purge_dry_run", "purge --tenant acme --dry-run", exitDone},
		{"purge", "purge --tenant acme --yes", exitDone},
		{"purge_again", "purge --tenant acme --yes", exitDone},
		{"purge_json", "purge --tenant Acme --yes -o json", exitDone},
	})
	db.Exec(t, `CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF old.id = 1 THEN RETURN NULL; END IF; RETURN old; END $$;
CREATE TRIGGER veto BEFORE DELETE ON runs FOR EACH ROW EXECUTE FUNCTION no()`)
	hold(t, db, purgesOf(tenantPurge), []screen{{"purge_left", "purge --tenant null --yes", exitFailed}})
}
