package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/policy"
)

// TestPlainProgress: where stderr is no terminal there is a record at the start and at the end of each sweep, also where
// nothing goes.
func TestPlainProgress(t *testing.T) {
	db := tables.New(t)
	addJobs(t, db, 30)
	policy := policyOf(eventsSweep, jobsSweep)
	o := invocation{args: []string{"sweep"}, env: at(db), policy: policy}.run(t).must(t, exitDone)
	contains(t, o.stderr, "level=INFO msg=start sweep=run_events\n", "level=INFO msg=start sweep=jobs\n",
		"msg=end sweep=jobs removed=30 held=0 batches=1 cutoff=2", "stop=drained\n", "msg=end sweep=run_events removed=0 held=0 batches=0")
	lacks(t, o.stderr, "\r", "\x1b")

	o = invocation{args: []string{"sweep", "--log-format", "json"}, env: at(db), policy: policyOf(ghostSweep, jobsSweep)}.run(t).must(t, exitRefused)
	messages := map[string]bool{}
	for line := range strings.Lines(o.stderr) {
		var record struct {
			Time       time.Time
			Level, Msg string
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		messages[record.Level+" "+strings.Fields(record.Msg)[0]] = true
	}
	for _, want := range []string{"INFO database", "INFO start", "INFO end", "ERROR 1"} {
		if !messages[want] {
			t.Errorf("no %q in:\n%s", want, o.stderr)
		}
	}
}

// TestProgressEvery: between start and end there is a record every 30 seconds, and not with each batch.
func TestProgressEvery(t *testing.T) {
	var stderr strings.Builder
	now := time.Date(2026, 11, 30, 2, 17, 0, 0, time.UTC)
	p := &progress{out: newOutput(nil, &stderr), since: map[string]time.Time{}, now: func() time.Time { return now }}
	p.start("run_events")
	for i := range 100 {
		now = now.Add(time.Second)
		p.batch(drain.Progress{Sweep: "run_events", Limit: 5000, Total: drain.Report{Removed: 5000 * (i + 1), Held: 3, CountsHeld: true, Batches: i + 1,
			Cutoff: policy.CutoffAt(now.Add(-time.Hour))}})
	}
	if n := strings.Count(stderr.String(), "msg=progress"); n != 3 {
		t.Errorf("%d records in 100 seconds:\n%s", n, stderr.String())
	}
	contains(t, stderr.String(), "sweep=run_events removed=150000 held=3 batches=30 cutoff=2026-11-30T01:17:30Z limit=5000\n")
}

func TestLiveText(t *testing.T) {
	b := drain.Progress{Sweep: "run_events", Number: 3, Of: 5, Limit: 5000, Next: 5000, Took: 214 * time.Millisecond, Left: 27 * time.Minute,
		Total: drain.Report{Removed: 835_000, Held: 48_120, CountsHeld: true, Batches: 167}}
	for _, c := range []struct {
		change func(*drain.Progress)
		want   string
	}{
		{func(*drain.Progress) {}, "[3/5] run_events  835,000 removed  48,120 held  batch 167 of 5,000 in 214ms  5,530 rows/s  27min left"},
		{func(b *drain.Progress) { b.Total.Children = 1_200_000 }, "[3/5] run_events  835,000 removed  1,200,000 children  48,120 held  batch 167 of 5,000 in 214ms  5,530 rows/s  27min left"},
		{func(b *drain.Progress) { b.Total.CountsHeld = false }, "[3/5] run_events  835,000 removed  batch 167 of 5,000 in 214ms  5,530 rows/s  27min left"},
		{func(b *drain.Progress) { b.Left = drain.NoCeiling }, "[3/5] run_events  835,000 removed  48,120 held  batch 167 of 5,000 in 214ms  5,530 rows/s"},
		{func(b *drain.Progress) { b.Next = 2000 }, "[3/5] run_events  835,000 removed  48,120 held  batch 167 of 5,000 in 214ms  5,530 rows/s  27min left  slow: the next batch is smaller"},
		{func(b *drain.Progress) { b.Batch.Locked, b.Total.Locked = 2, 12 }, "[3/5] run_events  835,000 removed  48,120 held  batch 167 of 5,000 in 214ms  5,530 rows/s  27min left  12 locked by others"},
	} {
		p := b
		c.change(&p)
		if got := liveText(p, 151*time.Second); got != c.want {
			t.Errorf("%q\nwant %q", got, c.want)
		}
	}
}
