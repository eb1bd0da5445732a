package policyfile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prunectl/prunectl/policy"
)

// fullPurges says every key of a purge.
const fullPurges = `version: 1
defaults:
  schema: app
  floor: 2h
  batch: {limit: 2000, target: 80ms}
  ceiling: {rows: 7}
  timeouts: {statement: 10s, lock: 300ms}
  pause: 20ms
purges:
  tenant:
    key: Tenant Id
    tables:
      - {table: run_events}
      - {table: messages, column: org}
      - table: [my.schema, orders]
        children:
          - table: order_lines
            key: {id: order_id, tenant: tenant}
            children: [{table: other.notes, key: {id: line}}]
      - {table: messages}
    exclude:
      zebras: they are not ours
      other.audit.log: |
        kept for ten years
        by law
      apes: nor are they
    batch: {limit: 10}
    timeouts: {lock: 1s}
    pause: none
    set: {app.purging: "on", app.by: prunectl}
  person:
    tables: [{table: persons, column: id}]
`

func TestEveryKeyOfPurges(t *testing.T) {
	app := func(table string) policy.Name { return policy.Name{Schema: "app", Table: table} }
	other := func(table string) policy.Name { return policy.Name{Schema: "other", Table: table} }
	tenant := policy.Purge{
		Name: "tenant", Key: "Tenant Id",
		Tables: []policy.PurgeTable{
			{Table: app("run_events")},
			{Table: app("messages"), Column: "org"},
			{Table: policy.Name{Schema: "my.schema", Table: "orders"}, Children: []policy.Child{{
				Table: app("order_lines"), Key: []policy.ChildKey{{Parent: "id", Child: "order_id"}, {Parent: "tenant", Child: "tenant"}},
				Children: []policy.Child{{Table: other("notes"), Key: []policy.ChildKey{{Parent: "id", Child: "line"}}}}}}},
			{Table: app("messages")},
		},
		Exclude: []policy.Exclusion{
			{Table: app("zebras"), Reason: "they are not ours"},
			{Table: other("audit.log"), Reason: "kept for ten years by law"},
			{Table: app("apes"), Reason: "nor are they"},
		},
		Batch:    policy.Batch{Limit: 10, Target: 80 * time.Millisecond},
		Timeouts: policy.Timeouts{Statement: 10 * time.Second, Lock: time.Second},
		Set:      []policy.Setting{{Name: "app.purging", Value: "on"}, {Name: "app.by", Value: "prunectl"}},
	}
	person := policy.Purge{
		Name: "person", Tables: []policy.PurgeTable{{Table: app("persons"), Column: "id"}},
		Batch: policy.Batch{Limit: 2000, Target: 80 * time.Millisecond}, Timeouts: policy.Timeouts{Statement: 10 * time.Second, Lock: 300 * time.Millisecond}, Pause: 20 * time.Millisecond,
	}
	f := parse(t, fullPurges)
	if d := cmp.Diff([]policy.Purge{tenant, person}, f.Purges, compare); d != "" {
		t.Error(d)
	}
	if len(f.Sweeps) != 0 {
		t.Errorf("%d sweeps", len(f.Sweeps))
	}
}

// TestSilenceOfPurges: what a file does not say stays zero, and the policy fills it in.
func TestSilenceOfPurges(t *testing.T) {
	want := policy.Purge{Name: "tenant", Key: "tenant_id", Tables: []policy.PurgeTable{{Table: policy.Name{Schema: "public", Table: "jobs"}}}}
	if d := cmp.Diff([]policy.Purge{want}, parse(t, purge()).Purges, compare); d != "" {
		t.Error(d)
	}
}

// TestPurgesBesideSweeps: a purge and a sweep may have one name, and neither knows of the other.
func TestPurgesBesideSweeps(t *testing.T) {
	f := parse(t, sweep()+"purges: {jobs: {key: id, tables: [{table: public.jobs}]}}\n")
	if len(f.Sweeps) != 1 || len(f.Purges) != 1 || f.Sweeps[0].Name != "jobs" || f.Purges[0].Name != "jobs" {
		t.Errorf("%+v, %+v", f.Sweeps, f.Purges)
	}
	if got := f.Position("jobs", "table"); got != "p.yaml:4:12" {
		t.Errorf("the sweep's table is at %s", got)
	}
	if got := f.PurgePosition("jobs", "key"); got != "p.yaml:8:22" {
		t.Errorf("the purge's key is at %s", got)
	}
}

// TestPurgePosition: a place is found by the keys of an inspection, where a name is whole however it was written.
func TestPurgePosition(t *testing.T) {
	f := parse(t, fullPurges)
	for _, c := range []struct{ purge, key, want string }{
		{"tenant", "", "p.yaml:10:3"},
		{"tenant", "key", "p.yaml:11:10"},
		{"tenant", "tables", "p.yaml:13:7"},
		{"tenant", "tables.0", "p.yaml:13:9"},
		{"tenant", "tables.0.table", "p.yaml:13:17"},
		{"tenant", "tables.1.column", "p.yaml:14:35"},
		{"tenant", "tables.2.children.0.key", "p.yaml:18:18"},
		{"tenant", "tables.2.children.0.key.tenant", "p.yaml:18:41"},
		{"tenant", "tables.2.children.0.children.0.table", "p.yaml:19:32"},
		{"tenant", "exclude", "p.yaml:22:7"},
		{"tenant", "exclude.app.zebras", "p.yaml:22:15"},
		{"tenant", "exclude.zebras", "p.yaml:22:15"},
		{"tenant", "exclude.other.audit.log", "p.yaml:23:24"},
		{"tenant", "batch.limit", "p.yaml:27:20"},
		{"tenant", "set.app.by", "p.yaml:30:38"},
		{"person", "", "p.yaml:31:3"},
		{"person", "tables.0", "p.yaml:32:14"},
		// what is not written is where the nearest key above it is
		{"tenant", "tables.0.column", "p.yaml:13:9"},
		{"tenant", "tables.9.column", "p.yaml:12:5"},
		{"tenant", "exclude.app.jobs", "p.yaml:21:5"},
		{"person", "key", "p.yaml:31:3"},
		{"person", "exclude", "p.yaml:31:3"},
		{"no_such_purge", "key", "p.yaml:9:1"},
	} {
		if got := f.PurgePosition(c.purge, c.key); got != c.want {
			t.Errorf("PurgePosition(%q, %q) = %s, want %s", c.purge, c.key, got, c.want)
		}
	}
	if got := parse(t, sweep()).PurgePosition("tenant", "key"); got != "p.yaml:1:1" {
		t.Errorf("in a file without purges: %s", got)
	}
}

// TestPurgesHaveNoProblems: what was accepted may be used.
func TestPurgesHaveNoProblems(t *testing.T) {
	for _, file := range []string{purge(), fullPurges, strings.Replace(purge(), "tenant:", "tables:", 1), purge("-key", "tables: [{table: a.b, column: c}, {table: a.b, column: d}]"),
		purge("tables: [{table: a.b, children: [{table: a.c, key: {id: x}}, {table: a.c, key: {id: y}}]}, {table: a.d, children: [{table: a.c, key: {id: x}}]}]")} {
		f := parse(t, file)
		if len(f.Purges) == 0 || slices.ContainsFunc(f.Purges, func(p policy.Purge) bool { return len(p.Problems()) > 0 }) {
			t.Errorf("%s\n%+v", file, f.Purges)
		}
	}
}
