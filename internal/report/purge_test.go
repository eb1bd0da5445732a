package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/report"
)

// fullPurge is the entry of a purge in which nothing is left out.
func fullPurge(now time.Time) *report.Purge {
	end := now.Add(6 * time.Second)
	p := report.NewPurge("tenant", "acme ")
	p.Key, p.Passes, p.Stop, p.LookedAt, p.ProvedAt, p.Started, p.Ended, p.Operator = "tenant_id", 2, report.Left, &end, &end, &now, &end, "jane"
	p.Error = &report.Error{SQLState: pointer("57P01"), Message: "terminating connection due to administrator command"}
	lines := report.NewPurgeTable("public.order_lines", "", []string{"public.orders", "public.customers"})
	lines.Found, lines.Removed, lines.Left = pointer(3), 3, pointer(0)
	runs := report.NewPurgeTable("public.runs", "tenant_id", nil)
	runs.Found, runs.FoundIsFloor, runs.Removed, runs.Late, runs.Left, runs.LeftIsFloor = pointer(100_000), true, 120_000, 7, pointer(9), true
	runs.Locked, runs.Stuck, runs.Batches, runs.SlowestBatch, runs.UnknownCommits, runs.Error = 2, 3, 24, 0.5, 1, p.Error
	runs.StuckOn = []report.Block{{Constraint: "runs_parent_fkey", Table: "public.runs", Rows: 3}}
	p.Tables = append(p.Tables, lines, runs)
	p.Excluded = []report.PurgeExcluded{{Table: "public.audit_log", Reason: "kept for ten years by law"}}
	p.Checks = []report.Check{{Check: "rights", Result: report.Refuse, Detail: "missing: DELETE on public.runs", Fix: pointer("GRANT DELETE ON runs TO sweeper"), Position: "prunectl.yaml:7:5"}}
	p.Writers = []report.PurgeWriter{{PID: 4711, App: "worker", Table: "public.runs"}}
	return p
}

// TestPurgeReceipts: each way in which a purge ends is worded, and none that is not proved can be read as done.
func TestPurgeReceipts(t *testing.T) {
	now := time.Date(2026, 11, 30, 2, 16, 58, 0, time.UTC)
	empty := func(p *report.Purge) {
		p.Checks, p.Writers, p.Error, p.Proved = []report.Check{}, []report.PurgeWriter{}, nil, true
		for i := range p.Tables {
			table := &p.Tables[i]
			table.Found, table.Left, table.FoundIsFloor, table.LeftIsFloor = pointer(0), pointer(0), false, false
			table.Removed, table.Late, table.Locked, table.Stuck, table.UnknownCommits, table.StuckOn, table.Error = 0, 0, 0, 0, 0, []report.Block{}, nil
		}
	}
	unlooked := func(p *report.Purge) {
		p.LookedAt, p.ProvedAt, p.Writers = nil, nil, []report.PurgeWriter{}
		for i := range p.Tables {
			p.Tables[i].Left, p.Tables[i].LeftIsFloor = nil, false
		}
	}
	notBegun := func(p *report.Purge) {
		unlooked(p)
		p.Started, p.Ended, p.Passes = nil, nil, 0
		for i := range p.Tables {
			table := &p.Tables[i]
			table.Removed, table.Late, table.Locked, table.Stuck, table.UnknownCommits, table.StuckOn, table.Error = 0, 0, 0, 0, 0, []report.Block{}, nil
		}
	}
	for _, c := range []struct {
		name   string
		stop   report.Stop
		change func(*report.Purge)
		says   []string
	}{
		{"left", report.Left, func(p *report.Purge) { p.Error, p.Checks = nil, []report.Check{} }, []string{
			"TABLE               BY                                         FOUND  REMOVED  LATE  LEFT\n",
			"public.order_lines  of public.orders of public.customers           3        3     0     0\n",
			"public.runs         tenant_id                             >= 100,000  120,000     7  >= 9\n",
			"public.audit_log    -                                              -        -     -     -  excluded: kept for ten years by law\n",
			`not purged "acme ": 120,003 rows of 2 tables went, and at least 9 rows were left at 2026-11-30 02:17:04Z, when all were looked at in one snapshot; run it again`,
			"public.runs: 3 stuck on runs_parent_fkey from public.runs\n", "public.runs: 2 locked by other sessions\n",
			"public.runs: at least 4 rows were there and neither locked nor stuck: they came after the last pass had gone by\n",
			"public.runs: the outcome of 1 commit is unknown",
			"7 rows were found late, by the look after the first pass, and a second pass followed\n",
			`1 transaction that has written to public.runs was open: pid 4711 ("worker"); what it commits is not in this look`,
			"by role sweeper (jane) in database app on db1.internal:5432, from 2026-11-30 02:16:58Z to 2026-11-30 02:17:04Z, purge tenant of prunectl.yaml sha256 0f0f",
			"backups, replicas, archives and files are not covered",
		}},
		{"purged", report.Purged, func(p *report.Purge) {
			empty(p)
			p.Tables[1].Removed = 9
			p.Writers = []report.PurgeWriter{{App: "a prepared transaction", Table: "public.runs"}, {PID: 1, Table: "public.runs"}, {PID: 2, App: "b", Table: "public.runs"}}
		}, []string{
			`purged "acme ": 9 rows of 2 tables; none was left at 2026-11-30 02:17:04Z, when all were looked at in one snapshot`,
			"at least 9 rows came meanwhile\n",
			`3 transactions that have written to public.runs were open: a prepared transaction, pid 1, pid 2 ("b"); what they commit is not in this look`,
		}},
		{"nothing was there", report.Purged, empty, []string{`nothing of "acme " was found in 2 tables, looked at in one snapshot at 2026-11-30 02:17:04Z; case and blanks of a tenant's name count`}},
		{"dry run", report.Counted, func(p *report.Purge) { notBegun(p); p.Checks[0].Result = report.Warning }, []string{
			`nothing was removed; prunectl purge would remove >= 100,003 rows of "acme " from 2 tables`,
			"prunectl.yaml:7:5: tenant: warning: missing: DELETE on public.runs\n", "\nGRANT DELETE ON runs TO sweeper;\n",
		}},
		{"refused", report.Refused, notBegun, []string{"prunectl.yaml:7:5: tenant: refused: missing: DELETE on public.runs\n", `not purged "acme ": refused; nothing was touched`, "\nGRANT DELETE ON runs TO sweeper;\n"}},
		{"declined", report.Declined, notBegun, []string{`not purged "acme ": what was typed is not this name; nothing was touched`}},
		{"busy", report.Busy, unlooked, []string{`not purged "acme ": another run purges this tenant; 120,003 rows of 2 tables went in this one, and what is left was not looked at`}},
		{"ceiling", report.Ceiling, func(p *report.Purge) { p.Error = nil }, []string{`not purged "acme ": the time is over; 120,003 rows of 2 tables went, and at least 9 rows were left at 2026-11-30 02:17:04Z, when all were looked at in one snapshot; run it again to go on`}},
		{"ceiling without a look", report.Ceiling, unlooked, []string{`not purged "acme ": the time is over; 120,003 rows of 2 tables went, and what is left was not looked at; run it again to go on`}},
		{"signal", report.Signal, unlooked, []string{`not purged "acme ": SIGTERM; 120,003 rows of 2 tables went, and what is left was not looked at; run it again to go on`}},
		{"signal before", report.Signal, notBegun, []string{`not purged "acme ": SIGTERM; nothing was touched`}},
		{"failed", report.Failed, unlooked, []string{`not purged "acme ": failed; 120,003 rows of 2 tables went, and what is left was not looked at; run it again to go on: terminating connection due to administrator command (SQLSTATE 57P01)`}},
		{"failed and looked", report.Failed, func(*report.Purge) {}, []string{"went, and at least 9 rows were left at 2026-11-30 02:17:04Z, when all were looked at in one snapshot; run it again to go on: terminating"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := full()
			r.Command, r.Reopening, r.Vacuum = report.Purging, nil, nil
			r.Purge = fullPurge(now)
			r.Purge.Stop = c.stop
			c.change(r.Purge)
			var b strings.Builder
			if err := r.Table(&b); err != nil {
				t.Fatal(err)
			}
			for _, want := range c.says {
				if !strings.Contains(b.String(), want) {
					t.Errorf("%q is missing in:\n%s", want, b.String())
				}
			}
			if done := strings.Contains(b.String(), "\npurged ") || strings.Contains(b.String(), "\nnothing of "); done != (c.stop == report.Purged) {
				t.Errorf("%s, and it reads as done or not:\n%s", c.stop, b.String())
			}
			if begun := r.Purge.Started != nil; strings.Contains(b.String(), "REMOVED") != begun {
				t.Errorf("begun: %t, and in it:\n%s", begun, b.String())
			}
			if err := schema(t).Validate(any(document(t, r))); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPurgeDoesNotDriveTheTerminal: what a catalog or a tenant says stays on its line.
func TestPurgeDoesNotDriveTheTerminal(t *testing.T) {
	r := full()
	r.Command, r.Reopening = report.Purging, nil
	r.Purge.Tenant = "a\x1b[2J\nb"
	r.Purge.Tables[0].Table = "public.a\x1b[2J\nb"
	r.Purge.Excluded[0].Reason, r.Purge.Writers[0].App, r.Purge.Operator = "x\x1b[2J\ny", "x\x1b[2J\ny", "x\x1b[2J\ny"
	var b strings.Builder
	if err := r.Table(&b); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(b.String(), '\x1b') || !strings.Contains(b.String(), `"a\x1b[2J\nb"`) {
		t.Errorf("%q", b.String())
	}
	lines, err := r.Purge.Preview()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if strings.ContainsAny(line, "\x1b\n") {
			t.Errorf("%q", line)
		}
	}
}
