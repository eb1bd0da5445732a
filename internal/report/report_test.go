package report_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/migrations/preflight"
)

const schemaFile = "../../docs/report.schema.json"

func pointer[T any](v T) *T { return &v }

// full is a report in which nothing is left out.
func full() *report.Report {
	now := time.Date(2026, 11, 30, 2, 17, 4, 123456000, time.UTC)
	counts := report.Counts{Examined: 9, Removed: 5, Held: pointer(1), Locked: 1, Moved: 1, Orphan: 1, Stuck: 1, Outside: 1, Undated: pointer(2), Unusable: pointer(12), Raised: 1}
	r := report.New(report.Sweeping, "v0.1.0")
	r.Policy = &report.Policy{File: "prunectl.yaml", SHA256: strings.Repeat("0f", 32)}
	r.Database = &report.Database{Host: "db1.internal", Port: 5432, Name: "app", Role: "sweeper", Server: "15.18"}
	r.Now, r.AsOf, r.Elapsed, r.ExitCode, r.Signal = &now, &now, 12.5, 143, "SIGTERM"
	r.Error = &report.Error{SQLState: pointer("57P01"), Message: "terminating connection due to administrator command"}
	r.Problems = []report.Problem{{Position: "prunectl.yaml:7:5", Message: "run_log.windw: unknown key"}}
	r.Window = &report.Window{Sweep: "run_events", Seconds: 30 * 86400, Replaced: 90 * 86400}
	r.Vacuum = &report.Vacuum{PID: 4711, What: "idle in transaction", App: "bi", Since: 3 * 3600}
	two := &report.Bounded{Count: 2}
	r.Health = []report.EventHealth{{Schema: "public", Dead: two, Owed: &report.Bounded{Count: 1000, IsFloor: true}, OldestOwed: &now, Lapsed: &report.Bounded{Count: 1}, Parked: two,
		Unknown: []report.UnknownPolicy{{Policy: "SETLED", Events: 4}}, Quiet: []report.QuietReceiver{{Receiver: "billing", LastSuccess: now}}, QuietSince: &now, Error: r.Error}}
	r.Components = []report.Component{{Result: report.Refuse, Error: r.Error, Report: preflight.Report{Component: "inbox_outbox", Schema: "inbox_outbox", State: preflight.Drift, Installed: pointer(1), Known: 1,
		Pending:  []preflight.Version{{Number: 2, Name: "add_column"}},
		Findings: []preflight.Finding{{Result: preflight.Refused, Kind: "column", Name: "inbox.state", Aspect: "type", Expected: "text", Found: "integer", Do: "ALTER TABLE"}}}}}
	r.Policies = []report.InboxPolicy{{Schema: "inbox_outbox", Agreement: report.Different, Fingerprint: pointer(strings.Repeat("0f", 32)), RecordedAt: &now, RecordedBy: pointer("deploy"),
		Differences: []report.WindowChange{{Setting: "inbox_window", Recorded: pointer("7d"), Given: pointer("1d")}}, Due: []report.DueByReplacing{{Ledger: "inbox", Bounded: *two}}, Error: r.Error}}
	r.Reopening = &report.Reopening{Reopened: []report.Reopened{{Event: 7, Delivery: 12, Receiver: "billing", Target: "eu"}}, Events: 1, Underway: 1, Gone: []int64{8}, Limited: true}
	r.Purge = fullPurge(now)
	r.Purges = []report.PurgeCheck{{Name: "tenant", Stop: report.Failed, Checks: []report.Check{{Check: "order", Result: report.Refuse, Detail: "d", Position: "prunectl.yaml:4:5"}}, Error: r.Error}}
	r.Purge.Tables[0].StuckOn, r.Purge.Tables[1].Of = r.Purge.Tables[1].StuckOn, r.Purge.Tables[0].Of // no list is empty
	s := report.NewSweep("run_events", "public.run_events")
	s.Counts, s.Stop, s.StopBy, s.Batches, s.Elapsed, s.SlowestBatch, s.UnknownCommits = counts, report.Ceiling, report.ByRows, 3, 1.5, 0.5, 1
	s.Overdue = pointer(86400.0)
	s.Backlog = &report.Backlog{Due: 7, DueIsFloor: true, OldestDue: &now, OldestHeld: &now, Rows: pointer(int64(61_200_000)), Size: pointer(int64(19 << 30))}
	s.Error = r.Error
	s.Arms = []report.Arm{{Arm: "run_events", Window: pointer(int64(7776000)), Cutoff: &now, Index: "run_events_retention", Counts: counts,
		ArmPlan: &report.ArmPlan{Due: 7, DueIsFloor: true, ThisRun: 5, ReadInVain: 2, OldestDue: &now, OldestHeld: &now, Statements: []string{"SELECT 1"}}}}
	s.HeldBy = []report.HeldBy{{Reason: "owner", Value: pointer("waiting-for-approval"), Rows: 48120, Owners: pointer(3), Oldest: &now}}
	s.StuckOn = []report.Block{{Constraint: "pins_job_id_fkey", Table: "public.pins", Rows: 1}}
	s.Checks = []report.Check{{Check: "index", Result: report.Refuse, Detail: "no index leads with created_at", Fix: pointer("CREATE INDEX CONCURRENTLY ON t (created_at);"), Position: "prunectl.yaml:7:5"}}
	r.Sweeps = append(r.Sweeps, s)
	r.Sum()
	return r
}

func document(t *testing.T, r *report.Report) map[string]any {
	t.Helper()
	var b strings.Builder
	if err := r.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal([]byte(b.String()), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSchemaHolds: the emptiest and the fullest report are what the published schema says.
func TestSchemaHolds(t *testing.T) {
	s := schema(t)
	empty := report.New(report.Checking, "devel")
	empty.Sweeps = append(empty.Sweeps, report.NewSweep("jobs", "public.jobs"))
	empty.Sweeps[0].Stop = report.Checked
	for name, r := range map[string]*report.Report{"nothing": report.New(report.Planning, "devel"), "empty": empty, "full": full()} {
		if err := s.Validate(any(document(t, r))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A schema that takes everything would prove nothing.
	wrong := document(t, full())
	delete(wrong["sweeps"].([]any)[0].(map[string]any), "stop")
	if s.Validate(any(wrong)) == nil {
		t.Error("a sweep without a stop passes")
	}
	wrong = document(t, full())
	wrong["totals"].(map[string]any)["removed"] = "5"
	if s.Validate(any(wrong)) == nil {
		t.Error("a count in quotes passes")
	}
	wrong = document(t, full())
	wrong["now"] = "2026-11-30 02:17:04"
	if s.Validate(any(wrong)) == nil {
		t.Error("a time without zone passes")
	}
}

// TestSchemaNamesEveryKey: no key is printed that the schema does not describe, and none is described that is never printed.
func TestSchemaNamesEveryKey(t *testing.T) {
	data, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	if root["$id"] != report.Schema {
		t.Errorf("the schema is of %v, the report of %s", root["$id"], report.Schema)
	}
	defs := root["$defs"].(map[string]any)
	resolve := func(s map[string]any) map[string]any {
		if ref, ok := s["$ref"].(string); ok {
			return defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
		return s
	}
	var properties func(s map[string]any) map[string]any
	properties = func(s map[string]any) map[string]any {
		all := map[string]any{}
		parts, _ := s["allOf"].([]any)
		for _, part := range parts {
			for k, v := range properties(resolve(part.(map[string]any))) {
				all[k] = v
			}
		}
		own, _ := s["properties"].(map[string]any)
		for k, v := range own {
			all[k] = v
		}
		return all
	}
	var compare func(at string, described map[string]any, printed any)
	compare = func(at string, described map[string]any, printed any) {
		described = resolve(described)
		switch v := printed.(type) {
		case map[string]any:
			props := properties(described)
			for k, inner := range v {
				d, ok := props[k].(map[string]any)
				if !ok {
					t.Errorf("%s.%s is printed and not described", at, k)
					continue
				}
				compare(at+"."+k, d, inner)
			}
			for k := range props {
				if _, ok := v[k]; !ok {
					t.Errorf("%s.%s is described and not printed", at, k)
				}
			}
		case []any:
			if len(v) == 0 {
				t.Errorf("%s is empty, so nothing of it is compared", at)
			}
			items, _ := described["items"].(map[string]any)
			for _, inner := range v {
				if _, ok := inner.(map[string]any); ok {
					compare(at+"[]", items, inner)
				}
			}
		}
	}
	compare("report", root, any(document(t, full())))

	stops := properties(defs["sweep"].(map[string]any))["stop"].(map[string]any)["enum"].([]any)
	var want []any
	for _, s := range report.Stops() {
		want = append(want, string(s))
	}
	if !reflect.DeepEqual(stops, want) {
		t.Errorf("stop is one of %v in the schema, and of %v in the program", stops, want)
	}

	purge := properties(root["properties"].(map[string]any)["purge"].(map[string]any))
	want = nil
	for _, s := range report.PurgeStops() {
		want = append(want, string(s))
	}
	if got := purge["stop"].(map[string]any)["enum"]; !reflect.DeepEqual(got, any(want)) {
		t.Errorf("the stop of a purge is one of %v in the schema, and of %v in the program", got, want)
	}

	policies := root["properties"].(map[string]any)["inbox_outbox"].(map[string]any)["items"].(map[string]any)
	agreements := policies["properties"].(map[string]any)["agreement"].(map[string]any)["enum"].([]any)
	want = nil
	for _, a := range report.Agreements() {
		want = append(want, string(a))
	}
	if !reflect.DeepEqual(agreements, want) {
		t.Errorf("agreement is one of %v in the schema, and of %v in the program", agreements, want)
	}
}

// TestLines: what is hard to bring about on a server is worded here.
func TestLines(t *testing.T) {
	var b strings.Builder
	swept := full()
	swept.Reopening, swept.Purge = nil, nil
	swept.Sum()
	if err := swept.Table(&b); err != nil {
		t.Fatal(err)
	}
	want := `SWEEP       REMOVED  CHILDREN  HELD  STUCK  BATCHES  TIME  STOP
run_events        5         0     1      1        3  1.5s  ceiling: rows
run_events: window 30d by --window is in force, in place of the file's 90d
run_events: 48,120 held by 3 owners in state waiting-for-approval, the oldest from 2026-11-30
run_events: 1 kept as orphans: their owner does not exist
run_events: 2 kept as undated: the age is null or too old to be an age
run_events: 12 rows have an unusable own window; they are kept
run_events: 1 row has an own window below the floor, which is raised to it
run_events: 1 locked and 1 moved by other sessions; the next run takes them
run_events: 1 stuck on pins_job_id_fkey from public.pins
run_events: the outcome of 1 commit is unknown: its rows are gone or still there, and are not counted as removed
prunectl.yaml:7:5: run_events: refused: no index leads with created_at; CREATE INDEX CONCURRENTLY ON t (created_at);
run_events: ceiling: rows: terminating connection due to administrator command (SQLSTATE 57P01)
rows are gone, disk space is not: vacuum reuses it; vacuum is held back 3h by pid 4711 (idle in transaction, app "bi")
`
	if b.String() != want {
		t.Errorf("got:\n%swant:\n%s", b.String(), want)
	}
}

// TestHealthLines: how deliveries stand, and that it was not read, in words.
func TestHealthLines(t *testing.T) {
	r := full()
	r.Command, r.Reopening, r.Purge = report.Surveying, nil, nil
	later := r.Now.Add(26 * time.Hour)
	r.Now = &later
	want := `domain_events in public: 2 dead letters; >= 1,000 deliveries owed, the oldest event from 2026-11-30 (1d 2h); 1 lapsed lease; 2 events held by a dead letter
domain_events in public: retention_policy "SETLED" is not known: the default window holds for 4 events
domain_events in public: receiver billing is quiet since 2026-11-30 (1d 2h)
domain_events in public: not read: terminating connection due to administrator command
`
	var b strings.Builder
	if err := r.Table(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(b.String(), "\n"+want) {
		t.Errorf("got:\n%swant at its end:\n%s", b.String(), want)
	}
	b.Reset()
	r.Health[0] = report.EventHealth{Schema: "public", Error: r.Error}
	if err := r.Table(&b); err != nil {
		t.Fatal(err)
	}
	if lacking := "dead letter"; strings.Contains(b.String(), lacking) {
		t.Errorf("%q was not read, and is in:\n%s", lacking, b.String())
	}
}

// TestReopeningLines: what is owed again, a line each and in sum, and what is not.
func TestReopeningLines(t *testing.T) {
	r := full()
	for _, want := range []string{
		"EVENT  DELIVERY  RECEIVER  TARGET\n    7        12  billing   eu\n1 delivery of 1 event reopened\n" +
			"1 under way already: a worker has claimed them, and they were left to it\nevent 8 is gone: nothing of it was reopened\nthe limit is reached and there may be more; run it again\n",
		"nothing was reopened\n",
	} {
		var b strings.Builder
		if err := r.Table(&b); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("got:\n%swant:\n%s", b.String(), want)
		}
		r.Reopening = &report.Reopening{}
	}
}

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 8192: "8.0 KiB", 118 << 20: "118 MiB", 1<<20 - 1: "1.0 MiB", 19 << 30: "19 GiB", 1 << 62: "4,096 PiB"} {
		if got := report.Size(bytes); got != want {
			t.Errorf("Size(%d) = %s, want %s", bytes, got, want)
		}
	}
}

func TestNotCountedIsNotZero(t *testing.T) {
	a, b := report.Counts{Removed: 1}, report.Counts{Removed: 2, Held: pointer(3)}
	a.Add(report.Counts{})
	if a.Held != nil {
		t.Error("a sum of what was not counted is a count")
	}
	a.Add(b)
	if a.Removed != 3 || a.Held == nil || *a.Held != 3 {
		t.Errorf("%+v", a)
	}
	b.Add(report.Counts{Held: pointer(4)})
	if *b.Held != 7 || *a.Held != 3 {
		t.Errorf("%d and %d: an addition changed what it was given", *b.Held, *a.Held)
	}
}

func TestTimesInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0s", 400 * time.Millisecond: "0.4s", 41800 * time.Millisecond: "41.8s", 59940 * time.Millisecond: "59.9s",
		59960 * time.Millisecond: "1m00s", 151 * time.Second: "2m31s", 3599600 * time.Millisecond: "1h00m", 62 * time.Minute: "1h02m",
	} {
		if got := report.Took(d); got != want {
			t.Errorf("Took(%v) = %s, want %s", d, got, want)
		}
	}
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 12 * time.Second: "12s", 5 * time.Minute: "5min", 2 * time.Hour: "2h", day: "1d", 26 * time.Hour: "1d 2h",
		7*day + 20*time.Hour: "7d 20h", 91*day + 5*time.Hour: "91d",
	} {
		if got := report.Ago(d); got != want {
			t.Errorf("Ago(%v) = %s, want %s", d, got, want)
		}
	}
	if got := report.Number(1234567); got != "1,234,567" {
		t.Error(got)
	}
}
