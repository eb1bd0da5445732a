package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/prunectl/prunectl/internal/report"
)

// TestSignal: the first signal lets the batch in hand end, and the report says exactly what went.
func TestSignal(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		name   string
		code   int
	}{{syscall.SIGTERM, "SIGTERM", 143}, {syscall.SIGINT, "SIGINT", 130}, {syscall.SIGHUP, "SIGHUP", 129}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const jobs = 400
			db := tables.New(t)
			addJobs(t, db, jobs)
			slowDeletes(t, db, 10)
			// The second sweep is never reached: a stop is honoured between sweeps too.
			policy := policyOf(with(jobsSweep, "batch: {limit: 20}"), eventsSweep)
			addRun(t, db, 1, "completed", 60, 10)
			r := invocation{args: []string{"sweep", "-o", "json", "--only", "jobs"}, env: at(db), policy: policy}.start(t)
			eventually(t, "a batch is committed", func() bool { return jobsLeft(t, db) < jobs })
			r.signal(c.signal)
			o := r.wait().must(t, c.code)
			doc := o.document(t)
			s := sweepOf(t, doc, "jobs")
			left := jobsLeft(t, db)
			if s.Removed != jobs-left || left == 0 || s.Stop != report.Signal || s.Drained || s.Error != nil {
				t.Errorf("%d of %d jobs are gone, and the report says %+v", jobs-left, jobs, s)
			}
			if doc.Signal != c.name {
				t.Errorf("signal %q", doc.Signal)
			}
			contains(t, o.stderr, "prunectl: "+c.name+": ending", "stopped by "+c.name)
			// The next run goes on.
			next := invocation{args: []string{"plan", "-o", "json", "--only", "jobs"}, env: at(db), policy: policy}.run(t).must(t, exitDone)
			if due := sweepOf(t, next.document(t), "jobs").Arms[0].Due; due != left {
				t.Errorf("%d jobs are due after the signal; %d are left", due, left)
			}
		})
	}
}

// TestSecondSignal: it cancels the batch in hand, on the server too, and that batch is not counted.
func TestSecondSignal(t *testing.T) {
	const jobs = 200
	db := tables.New(t)
	addJobs(t, db, jobs)
	slowDeletes(t, db, 2000) // minutes a batch, so that its end is not taken for the cancel
	r := invocation{args: []string{"sweep", "-o", "json"}, env: at(db), policy: policyOf(with(with(jobsSweep, "batch: {limit: 100}"), "timeouts: {statement: 10min}"), eventsSweep)}.start(t)
	deleting := func() bool {
		return db.Int(t, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'prunectl' AND state = 'active' AND wait_event = 'PgSleep' AND datname = current_database()") > 0
	}
	eventually(t, "the batch is under way", deleting)
	r.signal(syscall.SIGINT)
	eventually(t, "the first signal is heard", func() bool { return strings.Contains(r.said(), "SIGINT: ending") })
	if !deleting() {
		t.Error("the first signal cancelled the batch in hand")
	}
	r.signal(syscall.SIGINT)
	o := r.wait().must(t, 130)
	doc := o.document(t)
	if s := sweepOf(t, doc, "jobs"); s.Removed != 0 || s.Stop != report.Signal {
		t.Errorf("%+v", s)
	}
	if s := sweepOf(t, doc, "run_events"); s.Stop != report.NotReached {
		t.Errorf("a sweep was begun after the signal: %+v", s)
	}
	if left := jobsLeft(t, db); left != jobs {
		t.Errorf("%d jobs are left", left)
	}
	eventually(t, "no backend of ours is left", func() bool {
		return db.Int(t, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'prunectl' AND datname = current_database()") == 0
	})
}

// TestSignalBeforeTheSweep: with nothing under way there is nothing to wait for.
func TestSignalBeforeTheSweep(t *testing.T) {
	db := tables.New(t)
	addJobs(t, db, 10)
	// The catalog is locked, so the inspection waits.
	lock := db.Conn(t)
	if _, err := lock.Exec(t.Context(), "BEGIN; LOCK TABLE pg_catalog.pg_constraint IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"sweep", "plan", "check"} {
		r := invocation{args: []string{verb, "-o", "json"}, env: at(db), policy: policyOf(jobsSweep)}.start(t)
		eventually(t, "it is connected", func() bool { return strings.Contains(r.said(), "database ") })
		r.signal(syscall.SIGTERM)
		o := r.wait().must(t, 143)
		if s := sweepOf(t, o.document(t), "jobs"); s.Removed != 0 || s.Stop != report.NotReached {
			t.Errorf("%s: %+v", verb, s)
		}
	}
	if _, err := lock.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if left := jobsLeft(t, db); left != 10 {
		t.Errorf("%d jobs are left", left)
	}
}
