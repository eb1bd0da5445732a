package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/report"
)

// TestPurge removes each of several tenants whose names are alike: all of it, nothing of the others, with a receipt that adds
// up; and once more, which finds nothing.
func TestPurge(t *testing.T) {
	for i, name := range likeNames {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tenants.New(t)
			addTenants(t, db)
			runs := 4 + i
			others := othersRows(t, db, name)
			in := invocation{args: []string{"purge", "--tenant", name, "--yes", "-o", "json"}, env: at(db), policy: purgesOf(tenantPurge)}
			r := in.run(t).must(t, exitDone).document(t)
			p := purgeOf(t, r)
			want := fmt.Sprintf("run_events %d %d 0 0; messages %d %d 0 0; order_lines %d %d 0 0; orders %d %d 0 0; runs %d %d 0 0", 3*runs, 3*runs, runs, runs, 2*runs, 2*runs, runs, runs, runs, runs)
			if got := tablesSay(p); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if p.Tenant != name || p.Stop != report.Purged || !p.Proved || p.ProvedAt == nil || p.ProvedAt.Before(*r.Now) || p.Started.After(*p.ProvedAt) || p.Ended.Before(*p.ProvedAt) {
				t.Errorf("%+v", p)
			}
			if p.Name != "tenant" || p.Key != "tenant_id" || p.Passes != 1 || len(p.Writers) != 0 || len(p.Excluded) != 1 || p.Excluded[0].Table != "public.audit_log" || p.Operator != operator() {
				t.Errorf("%+v", p)
			}
			for i, table := range p.Tables {
				by := map[string]string{"public.messages": "org", "public.order_lines": ""}
				column, special := by[table.Table]
				if !special {
					column = "tenant_id"
				}
				if table.Table != tenantTables[i] || text(table.By) != column || (column == "") != (len(table.Of) == 1 && table.Of[0] == "public.orders") || table.Batches != 1 {
					t.Errorf("%+v", table)
				}
			}
			if r.Totals.Removed != rowsOfRun*runs || r.Policy.SHA256 == "" || r.Database.Name != db.Name {
				t.Errorf("%+v", r)
			}
			if left := tenantRows(t, db, name); left != 0 {
				t.Errorf("%d rows are left", left)
			}
			if got := othersRows(t, db, name); got != others {
				t.Errorf("the rows of others were %s and are %s", others, got)
			}
			if name == "acme%" || name == "null" { // they were names as long as a row had them
				contains(t, in.run(t).must(t, exitUsage).stderr, "looks like a ")
				return
			}
			p = purgeOf(t, in.run(t).must(t, exitDone).document(t))
			if p.Stop != report.Purged || !p.Proved {
				t.Errorf("again: %+v", p)
			}
		})
	}
}

// TestPurgeDryRun: every transaction of it is read-only, and what it counts is what goes.
func TestPurgeDryRun(t *testing.T) {
	db := tenants.New(t)
	addTenants(t, db)
	before := othersRows(t, db, "")
	p := purgeOf(t, invocation{args: []string{"purge", "--tenant", "acme", "--dry-run", "-o", "json"}, env: []string{"DATABASE_URL=" + readOnly(t, db)}, policy: purgesOf(tenantPurge)}.run(t).must(t, exitDone).document(t))
	if got := tablesSay(p); got != "run_events 12 0 0 -; messages 4 0 0 -; order_lines 8 0 0 -; orders 4 0 0 -; runs 4 0 0 -" || p.Stop != report.Counted || p.Proved || p.Started != nil {
		t.Errorf("%s\n%+v", got, p)
	}
	p = purgeOf(t, invocation{args: []string{"purge", "--tenant", "acme", "--dry-run", "--count-limit", "4", "-o", "json"}, env: at(db), policy: purgesOf(tenantPurge)}.run(t).must(t, exitDone).document(t))
	for _, table := range p.Tables {
		more := table.Table == "public.run_events" || table.Table == "public.order_lines"
		if *table.Found != 4 || table.FoundIsFloor != more {
			t.Errorf("%+v", table)
		}
	}
	if after := othersRows(t, db, ""); after != before {
		t.Errorf("the rows were %s and are %s", before, after)
	}
}

// TestPurgeExitCodes: each code, the word for the stop, and what is left of acme, which has 4 runs.
func TestPurgeExitCodes(t *testing.T) {
	const all = 4 * rowsOfRun
	change := func(from, to string) string {
		if !strings.Contains(tenantPurge, from) {
			t.Fatalf("%q is not in the purge", from)
		}
		return purgesOf(strings.Replace(tenantPurge, from, to, 1))
	}
	other := strings.Replace(tenantPurge, "tenant:", "again:", 1)
	for _, c := range []struct {
		name   string
		args   []string // behind purge --yes
		tenant string   // acme where it is empty
		policy string
		setup  string
		dsn    func(*testing.T, *pgtest.DB) string
		code   int
		left   int
		stop   report.Stop // "" where the run did not come as far as the catalog
		says   []string
	}{
		{name: "purged", stop: report.Purged},
		{name: "nothing there", tenant: "acmee", left: all, stop: report.Purged, says: []string{`nothing of "acmee" was found in 5 tables`}},
		{name: "dry run", args: []string{"--dry-run"}, left: all, stop: report.Counted, says: []string{`prunectl purge would remove 32 rows of "acme" from 5 tables`}},
		{name: "pattern", tenant: "ac%", code: exitUsage, left: all, says: []string{`prunectl: --tenant: "ac%" looks like a pattern`}},
		{name: "word", tenant: "all", code: exitUsage, left: all, says: []string{`prunectl: --tenant: "all" looks like a word`}},
		{name: "one of two", args: []string{"--only", "again"}, policy: purgesOf(tenantPurge, other), stop: report.Purged},
		{name: "one of two, none is named", policy: purgesOf(tenantPurge, other), code: exitUsage, left: all, says: []string{"prunectl.yaml has the purges tenant, again; write --only tenant or --only again"}},
		{name: "one that is not there", args: []string{"--only", "tennant"}, policy: purgesOf(tenantPurge, other), code: exitUsage, left: all, says: []string{`--only: prunectl.yaml has no purge "tennant"; did you mean tenant?`}},
		{name: "no purges", policy: policyOf(jobsSweep), code: exitUsage, left: all, says: []string{"prunectl.yaml has no purges"}},
		{name: "wrong policy", policy: change("key:", "kee:"), code: exitUsage, left: all, says: []string{"kee"}},
		{name: "wrong order", policy: purgesOf(wrongOrder), code: exitRefused, left: all, stop: report.Refused, says: []string{"tenant: refused: ", "run_events", "runs"}},
		{name: "forgotten", policy: change(`    exclude: {public.audit_log: "kept for ten years by law"}`+"\n", ""), code: exitRefused, left: all, stop: report.Refused, says: []string{"public.audit_log", "exclude: {public.audit_log: "}},
		{name: "forgotten later", setup: "CREATE TABLE notes (tenant_id text)", code: exitRefused, left: all, stop: report.Refused, says: []string{"public.notes"}},
		{name: "no such table", policy: change("{table: runs}", "{table: rums}"), code: exitRefused, left: all, stop: report.Refused, says: []string{"public.rums"}},
		{name: "column that cannot be compared", setup: "ALTER TABLE messages ALTER org TYPE name", code: exitRefused, left: all, stop: report.Refused, says: []string{"org"}},
		{name: "kept in place", setup: "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF old.id = 1 THEN RETURN NULL; END IF; RETURN old; END $$; CREATE TRIGGER veto BEFORE DELETE ON runs FOR EACH ROW EXECUTE FUNCTION no()",
			code: exitFailed, left: 1, stop: report.Left, says: []string{"public.runs: 1 stuck on veto", "1 row was left", "purge tenant left rows (exit 1)"}},
		{name: "no time", args: []string{"--max-time", "1ms"}, code: exitFailed, left: anyNumber, stop: report.Ceiling, says: []string{"the time is over", "purge tenant is not complete (exit 1)"}},
		{name: "no server", dsn: nobody, code: exitFailed, left: all, says: []string{"cannot connect to database app on 127.0.0.1:"}},
		{name: "read-only", dsn: readOnly, code: exitFailed, left: all, says: []string{"read-only target: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := tenants.New(t)
			addTenants(t, db)
			if c.setup != "" {
				db.Exec(t, c.setup)
			}
			before := othersRows(t, db, "acme")
			dsn, policy, name := db.DSN, c.policy, c.tenant
			if c.dsn != nil {
				dsn = c.dsn(t, db)
			}
			if policy == "" {
				policy = purgesOf(tenantPurge)
			}
			if name == "" {
				name = "acme"
			}
			args := append([]string{"purge", "--yes", "--tenant", name}, c.args...)
			env := []string{"DATABASE_URL=" + dsn}
			o := invocation{args: append(args, "-o", "json"), env: env, policy: policy}.run(t).must(t, c.code)
			r := o.document(t)
			if left := tenantRows(t, db, "acme"); left != c.left && c.left != anyNumber {
				t.Errorf("%d rows are left instead of %d", left, c.left)
			}
			if after := othersRows(t, db, "acme"); after != before {
				t.Errorf("the rows of others were %s and are %s", before, after)
			}
			switch {
			case c.stop == "" && (r.Purge != nil || r.Error == nil):
				t.Errorf("the run did not come as far as the catalog, and its document says %+v", r)
			case c.stop != "" && (purgeOf(t, r).Stop != c.stop || r.Purge.Proved != (c.stop == report.Purged)):
				t.Errorf("%+v", r.Purge)
			case c.stop == report.Refused && r.Totals.Removed != 0:
				t.Errorf("%+v", r.Totals)
			}
			// What a person reads, of a run after the first one.
			if c.stop != report.Purged || c.name == "nothing there" {
				o.stdout = invocation{args: args, env: env, policy: policy}.run(t).must(t, c.code).both()
			}
			contains(t, o.both(), c.says...)
		})
	}
}

// anyNumber stands for a count that is not the same each time.
const anyNumber = -1

// TestPurgeAsksWhereSomebodyCanAnswer: without a terminal it wants a yes beforehand, and touches nothing; not even a server
// is asked.
func TestPurgeAsksWhereSomebodyCanAnswer(t *testing.T) {
	in := invocation{args: []string{"purge", "--tenant", "acme", "-o", "json"}, env: []string{"DATABASE_URL=" + nobody(t, nil)}, policy: purgesOf(tenantPurge)}
	o := in.run(t).must(t, exitUsage)
	const want = "purge asks for the tenant's name, and there is no terminal to type it on; write --yes, or --dry-run to see what would go"
	if r := o.document(t); r.Error == nil || r.Error.Message != want || r.Purge != nil {
		t.Errorf("%+v", r)
	}
	if o.stderr != "prunectl: "+want+"\n" {
		t.Error(o.stderr)
	}
}

// TestPurgeOfOtherTypes: a tenant is a value of the column's type, and what is none is no tenant.
func TestPurgeOfOtherTypes(t *testing.T) {
	for _, c := range []struct {
		column, tenant, other string
		wrong                 []string
	}{
		{"uuid", "0b0e6a4e-5d3c-4c2e-9a51-1d7f0f3f4a11", "0b0e6a4e-5d3c-4c2e-9a51-1d7f0f3f4a12", []string{"acme", "0b0e6a4e", "0b0e6a4e-5d3c-4c2e-9a51-1d7f0f3f4a1%"}},
		{"bigint", "7", "70", []string{"acme", "007", "7.0", "7e0", " 7", "99999999999999999999"}},
		{"smallint", "-7", "7", []string{"40000"}},
		{"varchar(20)", "acme", "Acme", []string{"a*"}},
	} {
		t.Run(c.column, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.Exec(t, "CREATE TABLE things (tenant "+c.column+" NOT NULL, n int NOT NULL, PRIMARY KEY (tenant, n))")
			db.Exec(t, "INSERT INTO things SELECT x::"+c.column+", n FROM unnest(ARRAY[$1, $2]) x, generate_series(1, 5) n", c.tenant, c.other)
			policy := purgesOf("  all: {key: tenant, tables: [{table: things}]}\n")
			for _, wrong := range c.wrong {
				o := invocation{args: []string{"purge", "--yes", "--tenant=" + wrong}, env: at(db), policy: policy}.run(t).must(t, exitUsage)
				contains(t, o.stderr, fmt.Sprintf("prunectl: --tenant: %q ", wrong))
			}
			if n := db.Int(t, "SELECT count(*) FROM things"); n != 10 {
				t.Fatalf("%d rows are left", n)
			}
			p := purgeOf(t, invocation{args: []string{"purge", "--yes", "--tenant=" + c.tenant, "-o", "json"}, env: at(db), policy: policy}.run(t).must(t, exitDone).document(t))
			if got := tablesSay(p); got != "things 5 5 0 0" {
				t.Error(got)
			}
			if n := db.Text(t, "SELECT count(*) || ' ' || min(tenant::text) FROM things"); n != "5 "+c.other {
				t.Error(n)
			}
		})
	}
}

// TestPurgeNeedsTheRight: what is missing is named at once with what gives it, and with just that the purge runs.
func TestPurgeNeedsTheRight(t *testing.T) {
	pgtest.Role(t, "command_purger", "login")
	db := tenants.New(t)
	addTenants(t, db)
	as := []string{"DATABASE_URL=" + db.DSNAs("command_purger")}
	args := []string{"purge", "--yes", "--tenant", "acme"}
	o := invocation{args: args, env: as, policy: purgesOf(tenantPurge)}.run(t).must(t, exitRefused)
	contains(t, o.stdout, `not purged "acme": refused; nothing was touched`)
	contains(t, o.stderr, "purge tenant refused (exit 4)")
	grants := 0
	for line := range strings.Lines(o.stdout) {
		if strings.HasPrefix(line, "GRANT ") {
			grants++
			db.Exec(t, line)
		}
	}
	if grants == 0 {
		t.Errorf("no grants in:\n%s", o.stdout)
	}
	p := purgeOf(t, invocation{args: append(args, "-o", "json"), env: as, policy: purgesOf(tenantPurge)}.run(t).must(t, exitDone).document(t))
	if p.Stop != report.Purged || tenantRows(t, db, "acme") != 0 {
		t.Errorf("%+v", p)
	}
}

// TestPurgeOnAStandby: it is refused, and a dry run is not.
func TestPurgeOnAStandby(t *testing.T) {
	primary := pgtest.Own(t, pgserver.Options{})
	standby := pgtest.Own(t, pgserver.Options{StandbyOf: primary})
	db := &pgtest.DB{Name: "postgres", DSN: primary.DSN("postgres")}
	db.Exec(t, "CREATE TABLE things (tenant text NOT NULL, n int NOT NULL, PRIMARY KEY (tenant, n)); INSERT INTO things VALUES ('acme', 1)")
	other := &pgtest.DB{Name: "postgres", DSN: standby.DSN("postgres")}
	eventually(t, "the standby has the rows", func() bool {
		return other.Int(t, "SELECT count(*) FROM pg_class WHERE relname = 'things'") == 1 && other.Int(t, "SELECT count(*) FROM things") == 1
	})
	policy := purgesOf("  all: {key: tenant, tables: [{table: things}]}\n")
	o := invocation{args: []string{"purge", "--tenant", "acme", "--yes"}, env: at(other), policy: policy}.run(t).must(t, exitFailed)
	contains(t, o.stderr, "prunectl: read-only target: the server is a standby")
	o = invocation{args: []string{"purge", "--tenant", "acme", "--dry-run"}, env: at(other), policy: policy}.run(t).must(t, exitDone)
	contains(t, o.stdout, `prunectl purge would remove 1 row of "acme" from 1 table`)
}
