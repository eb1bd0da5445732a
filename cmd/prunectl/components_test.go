package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/migrations"
	"github.com/prunectl/prunectl/policy/policyfile"
)

// TestComponentTables holds the tables of each component to what its newest version makes.
func TestComponentTables(t *testing.T) {
	for _, name := range migrations.Components() {
		files, err := filepath.Glob("../../migrations/preflight/contracts/" + name + "/*.json")
		if err != nil || len(files) == 0 {
			t.Fatal(name, err)
		}
		data, err := os.ReadFile(files[len(files)-1])
		if err != nil {
			t.Fatal(err)
		}
		var contract struct{ Tables []struct{ Name string } }
		if err := json.Unmarshal(data, &contract); err != nil {
			t.Fatal(err)
		}
		var tables []string
		for _, table := range contract.Tables {
			if table.Name != "prunectl_"+name+"_migrations" {
				tables = append(tables, table.Name)
			}
		}
		slices.Sort(tables)
		if !slices.Equal(tables, componentTables[name]) {
			t.Errorf("%s has %v", name, tables)
		}
	}
}

// TestPreflight: a component that is not what its migrations made is not swept, the jobs beside it are; a check names what
// is wrong, object by object, with what to do.
func TestPreflight(t *testing.T) {
	for _, c := range []struct {
		name, drift string
		refused     bool
		check       []string // in the rows of a check
		sweep       string   // in the line of a sweep
	}{
		{name: "as it was made", check: []string{"component inbox_outbox  schema  ok      component inbox_outbox in schema inbox_outbox: up to date, version 1", "0 of 1 component refused"}},
		{name: "a trigger", drift: "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER veto BEFORE DELETE ON inbox_outbox.inbox FOR EACH ROW EXECUTE FUNCTION f()",
			refused: true, check: []string{"trigger inbox.veto: expected nothing, found ", "DROP TRIGGER", "1 of 1 component refused"},
			sweep: "inbox: refused: component inbox_outbox in schema inbox_outbox: at version 1 by its ledger, and not as the migrations made it: trigger inbox.veto: expected nothing, found "},
		{name: "several", drift: "ALTER TABLE inbox_outbox.inbox DROP CONSTRAINT inbox_completed_check; ALTER TABLE inbox_outbox.outbox ALTER created_at DROP NOT NULL; DROP INDEX inbox_outbox.leases_expiry", refused: true,
			check: []string{"constraint inbox.inbox_completed_check: expected ", "column outbox.created_at, nullability: expected not null, found nullable", "index leases.leases_expiry: expected "}, sweep: "; and 2 more, which prunectl check names"},
		{name: "older", drift: "DELETE FROM inbox_outbox.prunectl_inbox_outbox_migrations", refused: true, check: []string{"not installed; run prunectl migrate up --component inbox_outbox"}, sweep: "not installed; run prunectl migrate up"},
		{name: "newer", drift: "INSERT INTO inbox_outbox.prunectl_inbox_outbox_migrations VALUES (9, 'later')", refused: true, check: []string{"at version 9, newer than this binary, which knows up to 1"}, sweep: "at version 9, newer than this binary"},
		{name: "an index more", drift: "CREATE INDEX extra ON inbox_outbox.inbox (handler)", check: []string{"component inbox_outbox  schema  warning  index inbox.extra: expected nothing, found ", "0 of 1 component refused"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := inboxes.New(t)
			fillInbox(t, db, inboxOutbox)
			if c.drift != "" {
				db.Exec(t, c.drift)
			}
			policy := inboxPolicyOf(inboxOutbox, "20d", "20d")
			code, left, stop := exitDone, "19 30 19 30 0 0", report.Drained
			if c.refused {
				code, left, stop = exitRefused, "30 30 30 30 1 0", report.Refused
			}
			o := invocation{args: []string{"check"}, env: at(db), policy: policy}.run(t).must(t, code)
			contains(t, o.stdout, c.check...)
			named := invocation{args: strings.Fields("check --component inbox_outbox -o json"), env: at(db)}.run(t).must(t, code).document(t)
			if len(named.Components) != 1 || len(named.Sweeps) != 0 || named.Policy != nil {
				t.Fatalf("%+v", named)
			}
			if n := len(named.Components[0].Findings); strings.Contains(c.drift, ";") && n == 0 || c.drift == "" && n != 0 {
				t.Errorf("%d findings", n)
			}
			invocation{args: []string{"plan"}, env: at(db), policy: policy}.run(t).must(t, code)
			o = invocation{args: []string{"sweep"}, env: at(db), policy: policy}.run(t).must(t, code)
			contains(t, o.stdout, c.sweep)
			lacks(t, o.stderr, "schema:") // a warning is one of check
			if got := inboxLeft(t, db, inboxOutbox); got != left {
				t.Errorf("left: %s", got)
			}
			again := invocation{args: []string{"sweep", "-o", "json"}, env: at(db), policy: policy}.run(t).must(t, code).document(t)
			if s := sweepOf(t, again, "outbox"); s.Stop != stop || (len(again.Components) == 1) != c.refused {
				t.Errorf("%s, %d components", s.Stop, len(again.Components))
			}
			if c.refused && db.Int(t, "SELECT count(*) FROM inbox_outbox.settings") != 0 {
				t.Error("a policy is recorded")
			}
		})
	}
}

// TestCheckOfComponents: named ones are looked at where they are, and where they are not; no policy file is needed.
func TestCheckOfComponents(t *testing.T) {
	db := inboxes.New(t)
	for _, c := range []struct {
		args   string
		policy string
		code   int
		says   []string
	}{
		{args: "--component inbox_outbox", says: []string{"component inbox_outbox in schema inbox_outbox: up to date, version 1\n0 of 1 component refused"}},
		{args: "--component inbox_outbox --schema " + oddSchema, says: []string{"component inbox_outbox in schema " + oddSchema + ": up to date, version 1"}},
		{args: "--component inbox_outbox --schema nowhere", code: exitRefused, says: []string{"component inbox_outbox in schema nowhere: not installed; run prunectl migrate up --component inbox_outbox --schema 'nowhere'", "1 of 1 component refused (exit 4)"}},
		{args: "--component run_events,inbox_outbox", code: exitRefused, says: []string{"component run_events in schema public: not installed; run prunectl migrate up --component run_events", "1 of 2 components refused"}},
		{args: "--component inbox_outbox -f prunectl.yaml", policy: policyOf(jobsSweep), says: []string{"jobs ", "0 of 1 sweep refused\n0 of 1 component refused"}},
		{args: "--component inbox_outbox", policy: "no policy at all"},
		{args: "--component inbox_outbox --only jobs", policy: policyOf(jobsSweep), says: []string{"0 of 1 sweep refused"}},
	} {
		o := invocation{args: strings.Fields("check " + c.args), env: at(db), policy: c.policy}.run(t).must(t, c.code)
		contains(t, o.both(), c.says...)
	}
	// On a standby, where nothing can be swept, it is asked too.
	invocation{args: strings.Fields("check --component inbox_outbox"), env: []string{"DATABASE_URL=" + readOnly(t, db)}}.run(t).must(t, exitDone)
	db.Exec(t, "CREATE INDEX extra ON inbox_outbox.inbox (handler)")
	contains(t, invocation{args: strings.Fields("check --component inbox_outbox --strict"), env: at(db)}.run(t).must(t, exitRefused).stderr, "1 of 1 component refused (exit 4)")
	if o := (invocation{args: strings.Fields("check --component inbox_outbox -q"), env: at(db)}).run(t).must(t, exitDone); !strings.Contains(o.stdout, "warning") {
		t.Errorf("no warning: %s", o.both())
	}
	hold(t, db, "", []screen{{"component_check", "check --component inbox_outbox,domain_events", exitRefused}})
}

// TestSomebodyElsesInbox: a table of the name alone is no component.
func TestSomebodyElsesInbox(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, "CREATE TABLE inbox (id bigint PRIMARY KEY, completed_at timestamptz); CREATE INDEX ON inbox (completed_at, id); INSERT INTO inbox VALUES (1, now() - interval '30 days')")
	r := invocation{args: []string{"sweep", "-o", "json"}, env: at(db), policy: policyOf("\n  inbox: {table: inbox, age: completed_at, window: 7d, guard: {ended: true}}\n")}.run(t).must(t, exitDone).document(t)
	if r.Components != nil || r.Policies != nil || r.Totals.Removed != 1 {
		t.Errorf("%+v", r)
	}
}

// TestPreflightOfOthers: what was added to another component is for check to refuse, and no end of its retention.
func TestPreflightOfOthers(t *testing.T) {
	db := pgtest.New(t)
	invocation{args: strings.Fields("migrate up --component run_events"), env: at(db)}.run(t).must(t, exitDone)
	db.Exec(t, `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER audit AFTER INSERT ON run_events FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO runs (tenant_id, id, status) VALUES ('t', 'r', 'completed'); INSERT INTO run_events (tenant_id, run_id, sequence, type, event, created_at) VALUES ('t', 'r', 1, 'x', '{}', now() - interval '100 days')`)
	ready, err := policyfile.Ready("run_events")
	if err != nil {
		t.Fatal(err)
	}
	o := invocation{args: []string{"check"}, env: at(db), policy: string(ready)}.run(t).must(t, exitRefused)
	contains(t, o.stdout, "trigger run_events.audit: expected nothing, found ")
	invocation{args: []string{"sweep"}, env: at(db), policy: string(ready)}.run(t).must(t, exitDone)
	if n := db.Int(t, "SELECT count(*) FROM run_events"); n != 0 {
		t.Errorf("%d events are left", n)
	}
}
