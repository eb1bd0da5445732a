package main

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/migrations"
)

// inboxes are the tables of the component inbox_outbox, in its own schema and in one of another name, and jobs.
var inboxes = pgtest.NewTemplate("command_inboxes", func(ctx context.Context, dsn string) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	for _, schema := range []string{"", oddSchema} {
		m, err := migrations.New(config, migrations.Options{Component: inboxOutbox, Schema: schema})
		if err != nil {
			return err
		}
		if _, err = m.Up(ctx); err != nil {
			return err
		}
		if err := m.Close(); err != nil {
			return err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.PgConn().Exec(ctx, `
CREATE TABLE jobs (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state text NOT NULL CHECK (state IN ('queued', 'done', 'failed', 'cancelled')), finished_at timestamptz, payload text);
CREATE INDEX jobs_age ON jobs (finished_at, id)`).Close()
})

const oddSchema = `In."Box`

// inboxPolicyOf is a policy file over the inbox, the outbox, the leases and the jobs.
func inboxPolicyOf(schema, inbox, outbox string) string {
	return "version: 1\ndefaults: {schema: '" + schema + "'}\nsweeps:" + `
  inbox:
    table: inbox
    age: completed_at
    window: ` + inbox + `
    floor: 1s
    guard: {state: state, terminal: [completed], live: [pending]}
  outbox:
    table: outbox
    age: delivered_at
    window: ` + outbox + `
    floor: 1s
    guard: {ended: true}
  leases:
    table: leases
    expires: expires_at
    guard: {none: "an expired lease is nobody's"}
` + strings.Replace(jobsSweep, "table: jobs", "table: public.jobs", 1)
}

// fillInbox adds, for each of days 1 to 30, a completed event and a delivered record of that age, one that is not, an
// expired lease, and 5 jobs that are due.
func fillInbox(t *testing.T, db *pgtest.DB, schema string) {
	t.Helper()
	db.Exec(t, strings.ReplaceAll(`
INSERT INTO S.inbox (handler, event_id, state, completed_at) SELECT 'h', 'c' || d, 'completed', now() - d * interval '1 day' FROM generate_series(1, 30) d;
INSERT INTO S.inbox (handler, event_id, received_at) SELECT 'h', 'p' || d, now() - d * interval '1 day' FROM generate_series(1, 30) d;
INSERT INTO S.outbox (event_id, topic, body, delivered_at) SELECT 'd' || d, 't', '{}', now() - d * interval '1 day' FROM generate_series(1, 30) d;
INSERT INTO S.outbox (event_id, topic, body, created_at) SELECT 'w' || d, 't', '{}', now() - d * interval '1 day' FROM generate_series(1, 30) d;
INSERT INTO S.leases VALUES ('h', 'p', 'w', gen_random_uuid(), now() - interval '1 hour')`, "S.", pgx.Identifier{schema}.Sanitize()+"."))
	addJobs(t, db, 5)
}

// inboxLeft says what is there: completed, pending, delivered, waiting, leases, jobs.
func inboxLeft(t *testing.T, db *pgtest.DB, schema string) string {
	t.Helper()
	return db.Text(t, strings.ReplaceAll(`
SELECT concat_ws(' ', (SELECT count(*) FROM S.inbox WHERE state = 'completed'), (SELECT count(*) FROM S.inbox WHERE state = 'pending'),
  (SELECT count(*) FROM S.outbox WHERE delivered_at IS NOT NULL), (SELECT count(*) FROM S.outbox WHERE delivered_at IS NULL),
  (SELECT count(*) FROM S.leases), (SELECT count(*) FROM jobs))`, "S.", pgx.Identifier{schema}.Sanitize()+"."))
}

func policyIn(t *testing.T, r report.Report) report.InboxPolicy {
	t.Helper()
	if len(r.Policies) != 1 {
		t.Fatalf("%d policies: %+v", len(r.Policies), r.Policies)
	}
	return r.Policies[0]
}

// TestOnePolicy: the first sweep records the windows, others go by the same ones; a file with others is refused before a row
// goes, the jobs beside it are swept, and --replace-policy puts it in the place of the recorded one.
func TestOnePolicy(t *testing.T) {
	for _, schema := range []string{"inbox_outbox", oddSchema} {
		t.Run(schema, func(t *testing.T) {
			t.Parallel()
			db := inboxes.New(t)
			fillInbox(t, db, schema)
			run := func(code int, policy, args string) report.Report {
				t.Helper()
				return invocation{args: strings.Fields(args + " -o json"), env: at(db), policy: policy}.run(t).must(t, code).document(t)
			}
			week, longer, shorter := inboxPolicyOf(schema, "20d", "10d"), inboxPolicyOf(schema, "20d", "25d"), inboxPolicyOf(schema, "5d", "10d")

			if p := policyIn(t, run(exitDone, week, "plan")); p.Agreement != report.Unrecorded || p.RecordedBy != nil {
				t.Errorf("plan: %+v", p)
			}
			if n := db.Int(t, "SELECT count(*) FROM "+pgx.Identifier{schema, "settings"}.Sanitize()); n != 0 {
				t.Error("a plan records")
			}
			if p := policyIn(t, run(exitDone, week, "sweep")); p.Agreement != report.Recorded || p.Fingerprint == nil || *p.RecordedBy != db.Conn(t).Config().User {
				t.Errorf("first: %+v", p)
			}
			if got := inboxLeft(t, db, schema); got != "19 30 9 30 0 0" {
				t.Fatalf("left: %s", got)
			}
			if p := policyIn(t, run(exitDone, week, "sweep")); p.Agreement != report.Same {
				t.Errorf("again: %+v", p)
			}

			addJobs(t, db, 5)
			db.Exec(t, "INSERT INTO "+pgx.Identifier{schema, "leases"}.Sanitize()+" VALUES ('h', 'p', 'w', gen_random_uuid(), now() - interval '1 hour')")
			r := run(exitRefused, shorter, "sweep")
			p := policyIn(t, r)
			if p.Agreement != report.Different || len(p.Differences) != 1 || p.Changes() != "inbox_window: recorded 20d, given 5d" {
				t.Errorf("another: %+v", p)
			}
			for _, name := range []string{"inbox", "outbox", "leases"} {
				if s := sweepOf(t, r, name); s.Stop != report.Refused || s.Removed != 0 || len(s.Arms) != 0 {
					t.Errorf("%+v", s)
				}
			}
			if got := inboxLeft(t, db, schema); got != "19 30 9 30 1 0" {
				t.Errorf("left: %s", got)
			}
			// It is of the two ledgers: where neither is swept nobody asks.
			if r := run(exitDone, shorter, "sweep --only leases"); r.Policies != nil || sweepOf(t, r, "leases").Removed != 1 {
				t.Errorf("%+v", r)
			}

			p = policyIn(t, run(exitDone, longer, "sweep --replace-policy"))
			if p.Agreement != report.Replaced || len(p.Due) != 0 || p.Changes() != "outbox_window: recorded 10d, given 25d" {
				t.Errorf("replaced: %+v", p)
			}
			run(exitDone, longer, "sweep")
			run(exitRefused, week, "sweep")
			if got := inboxLeft(t, db, schema); got != "19 30 9 30 0 0" {
				t.Errorf("left: %s", got)
			}
		})
	}
}

// TestShorterWindow: it says how many rows become due by it and wants a yes, which nobody gives where there is no terminal.
func TestShorterWindow(t *testing.T) {
	db := inboxes.New(t)
	fillInbox(t, db, inboxOutbox)
	before, after := inboxPolicyOf(inboxOutbox, "20d", "20d"), inboxPolicyOf(inboxOutbox, "5d", "9d")
	invocation{args: []string{"sweep"}, env: at(db), policy: before}.run(t).must(t, exitDone)
	addJobs(t, db, 5)

	// No row of any sweep goes before the answer.
	o := invocation{args: []string{"sweep", "--replace-policy"}, env: at(db), policy: after}.run(t).must(t, exitUsage)
	contains(t, o.stderr, "inbox_window: recorded 20d, given 5d; outbox_window: recorded 20d, given 9d; 15 rows of inbox become due by it; 11 rows of outbox become due by it: say yes to that (--yes)")
	if got := inboxLeft(t, db, inboxOutbox); got != "19 30 19 30 0 5" {
		t.Errorf("left: %s", got)
	}
	if o := (invocation{args: []string{"sweep", "--yes"}, env: at(db), policy: after}).run(t).must(t, exitUsage); o.stderr != "prunectl: --yes answers what --replace-policy asks; write both, or leave it out\n" {
		t.Error(o.stderr)
	}

	o = invocation{args: []string{"sweep", "--replace-policy", "--yes"}, env: at(db), policy: after}.run(t).must(t, exitDone)
	contains(t, o.stderr, "15 rows of inbox due by it")
	contains(t, o.stdout, "inbox_outbox in inbox_outbox: the recorded policy is replaced: inbox_window: recorded 20d, given 5d; outbox_window: recorded 20d, given 9d; 15 rows of inbox due by it; 11 rows of outbox due by it")
	if got := inboxLeft(t, db, inboxOutbox); got != "4 30 8 30 0 0" {
		t.Errorf("left: %s", got)
	}
	r := invocation{args: []string{"sweep", "-o", "json"}, env: at(db), policy: after}.run(t).must(t, exitDone).document(t)
	if p := policyIn(t, r); p.Agreement != report.Same {
		t.Errorf("%+v", p)
	}
}

// TestReplayWindow: an inbox window that is shorter than events can come again is refused with the reason, whatever is said;
// what no file can say stays as it is recorded.
func TestReplayWindow(t *testing.T) {
	db := inboxes.New(t)
	fillInbox(t, db, inboxOutbox)
	invocation{args: []string{"sweep"}, env: at(db), policy: inboxPolicyOf(inboxOutbox, "20d", "20d")}.run(t).must(t, exitDone)
	recordSettings(t, db, `{"inbox_window": 1728000, "outbox_window": 1728000, "cleanup_interval": 1800, "batch": 77, "replay_window.redelivery": 0, "replay_window.manual": 864000, "replay_window.remote": 0}`)
	const reason = "inbox_window is 5d; it is from 10d to 365d here: replay_window.manual is 10d, and a removed inbox row lets the same event in again as new"
	for _, args := range []string{"sweep", "sweep --replace-policy --yes", "check"} {
		o := invocation{args: strings.Fields(args), env: at(db), policy: inboxPolicyOf(inboxOutbox, "5d", "20d")}.run(t).must(t, exitRefused)
		contains(t, o.stdout, reason)
	}
	contains(t, invocation{args: []string{"plan"}, env: at(db), policy: inboxPolicyOf(inboxOutbox, "5d", "20d")}.run(t).must(t, exitDone).stdout, "inbox_outbox in inbox_outbox: a sweep is refused: unusable settings: "+reason)
	if got := inboxLeft(t, db, inboxOutbox); got != "19 30 19 30 0 0" {
		t.Errorf("left: %s", got)
	}
	invocation{args: strings.Fields("sweep --replace-policy --yes"), env: at(db), policy: inboxPolicyOf(inboxOutbox, "11d", "20min")}.run(t).must(t, exitDone)
	// The interval is no longer than a window.
	want := `{"batch": 77, "inbox_window": 950400, "outbox_window": 1200, "cleanup_interval": 1200, "replay_window.manual": 864000, "replay_window.remote": 0, "replay_window.redelivery": 0}`
	if got := db.Text(t, "SELECT settings::text FROM inbox_outbox.settings"); got != want {
		t.Errorf("recorded %s", got)
	}
}

// recordSettings writes settings as another program would.
func recordSettings(t *testing.T, db *pgtest.DB, fields string) {
	t.Helper()
	db.Exec(t, "UPDATE inbox_outbox.settings SET settings = $1::text::jsonb, fingerprint = repeat('0', 64), recorded_by = 'deploy'", fields)
}

// TestWindowsOfSeveralSweeps: of several sweeps over one table the shortest window counts, one that is never says nothing,
// and a window that is no time since the end is refused.
func TestWindowsOfSeveralSweeps(t *testing.T) {
	split := func(first, second, age string) string {
		return "version: 1\ndefaults: {schema: inbox_outbox}\nsweeps:" + `
  mail: {table: inbox, only: {handler: mail}, age: ` + age + `, window: ` + first + `, guard: {state: state, terminal: [completed]}}
  other: {table: inbox, only: {handler: {not: mail}}, overlaps: [mail], age: completed_at, window: ` + second + `, guard: {state: state, terminal: [completed]}}
`
	}
	for _, c := range []struct {
		name, policy string
		code         int
		inbox        int64 // recorded; 0: none
		says         string
	}{
		{"shortest", split("20d", "3d", "completed_at"), exitDone, 3 * 86400, ""},
		{"one of them never", split("never", "9d", "completed_at"), exitDone, 9 * 86400, ""},
		{"never", split("never", "never", "completed_at"), exitDone, 0, ""},
		{"by another column", split("20d", "3d", "received_at"), exitRefused, 0, "mail goes by received_at, and a policy is about the time since completed_at; write age: completed_at"},
		{"too long", split("400d", "500d", "completed_at"), exitRefused, 0, "inbox_window is 400d; it is from 1s to 365d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := inboxes.New(t)
			o := invocation{args: []string{"sweep"}, env: at(db), policy: c.policy}.run(t).must(t, c.code)
			contains(t, o.stdout, c.says)
			if got := db.Int(t, "SELECT coalesce(max((settings->>'inbox_window')::bigint), 0) FROM inbox_outbox.settings"); got != c.inbox {
				t.Errorf("recorded is an inbox window of %d seconds", got)
			}
		})
	}
}

// TestRightsOfPolicies: what the role lacks to agree is named, and with it the sweep runs.
func TestRightsOfPolicies(t *testing.T) {
	pgtest.Role(t, "command_cleaner", "login")
	db := inboxes.New(t)
	fillInbox(t, db, inboxOutbox)
	policy := inboxPolicyOf(inboxOutbox, "20d", "20d")
	as := []string{"DATABASE_URL=" + db.DSNAs("command_cleaner")}
	r := invocation{args: []string{"sweep", "-o", "json"}, env: as, policy: policy}.run(t).must(t, exitRefused).document(t)
	if r.Totals.Removed != 0 {
		t.Errorf("%+v", r.Totals)
	}
	// The ledger and the settings are asked for once the schema can be used.
	for range 3 {
		o := invocation{args: []string{"check"}, env: as, policy: policy}.run(t)
		for line := range strings.Lines(o.stdout) {
			if strings.HasPrefix(line, "GRANT ") {
				db.Exec(t, line)
			}
		}
	}
	invocation{args: []string{"check"}, env: as, policy: policy}.run(t).must(t, exitDone)
	// Nothing is recorded yet: who could not record it is told before the first sweep.
	db.Exec(t, "REVOKE INSERT ON inbox_outbox.settings FROM command_cleaner")
	for _, command := range []string{"check", "sweep"} {
		o := invocation{args: []string{command}, env: as, policy: policy}.run(t).must(t, exitRefused)
		contains(t, o.stdout, `GRANT SELECT, INSERT, UPDATE ON "inbox_outbox"."settings" TO "command_cleaner"`)
	}
	db.Exec(t, "GRANT INSERT ON inbox_outbox.settings TO command_cleaner")
	p := policyIn(t, invocation{args: []string{"sweep", "-o", "json"}, env: as, policy: policy}.run(t).must(t, exitDone).document(t))
	if p.Agreement != report.Recorded || *p.RecordedBy != "command_cleaner" {
		t.Errorf("%+v", p)
	}
	// Who may only read it is told the difference all the same.
	db.Exec(t, "REVOKE INSERT, UPDATE ON inbox_outbox.settings FROM command_cleaner")
	invocation{args: []string{"sweep"}, env: as, policy: policy}.run(t).must(t, exitDone)
	o := invocation{args: []string{"sweep"}, env: as, policy: inboxPolicyOf(inboxOutbox, "30d", "20d")}.run(t).must(t, exitRefused)
	contains(t, o.stdout, "inbox_window: recorded 20d, given 30d")
	o = invocation{args: []string{"sweep", "--replace-policy"}, env: as, policy: inboxPolicyOf(inboxOutbox, "30d", "20d")}.run(t).must(t, exitRefused)
	contains(t, o.stdout, `GRANT SELECT, INSERT, UPDATE ON "inbox_outbox"."settings" TO "command_cleaner"`)
}

// TestScreensOfPolicies holds what a person sees of them.
func TestScreensOfPolicies(t *testing.T) {
	db := inboxes.New(t)
	fillInbox(t, db, inboxOutbox)
	db.Exec(t, "ANALYZE inbox_outbox.inbox, inbox_outbox.outbox, inbox_outbox.leases, jobs")
	hold(t, db, inboxPolicyOf(inboxOutbox, "20d", "20d"), []screen{{"inbox_sweep", "sweep", exitDone}})
	db.Exec(t, "UPDATE inbox_outbox.settings SET recorded_by = 'deploy'")
	hold(t, db, inboxPolicyOf(inboxOutbox, "5d", "30d"), []screen{
		{"inbox_check", "check", exitDone},
		{"inbox_plan", "plan", exitDone},
		{"inbox_status", "status", exitDone},
		{"inbox_refused", "sweep", exitRefused},
		{"inbox_replace", "sweep --replace-policy --yes", exitDone},
	})
	// Silence is for those who agree.
	for args, silent := range map[string]bool{"sweep -q": false, "plan -q": false, "status -q": false} {
		o := invocation{args: strings.Fields(args), env: at(db), policy: inboxPolicyOf(inboxOutbox, "6d", "30d")}.run(t)
		if (o.both() == "") != silent {
			t.Errorf("%s: %s", args, o.both())
		}
	}
	o := invocation{args: []string{"sweep", "-q"}, env: at(db), policy: inboxPolicyOf(inboxOutbox, "5d", "30d")}.run(t).must(t, exitDone)
	if o.both() != "" {
		t.Error(o.both())
	}
}
