package study

import (
	"fmt"

	"github.com/prunectl/prunectl/bench/internal/measure"
)

// Bound is one thing that must hold, and what was measured.
type Bound struct {
	Work string `json:"work"`
	Want string `json:"want"`
	Got  string `json:"got"`
	Met  bool   `json:"met"`
	Cost bool   `json:"cost"` // counted, the same on every machine: tests assert it
	// Shown says that there is nothing to meet: it stands beside what must hold.
	Shown bool `json:"shown,omitempty"`
}

// FlatBound holds that the last full batch costs what the first did, with an older snapshot open.
func FlatBound(d measure.Drain, limit int) Bound {
	b := Bound{Work: "older snapshot open: buffers of the last full batch against the first", Want: "at most 1.2", Cost: true}
	full := d.Full(limit)
	if len(full) < 10 {
		b.Got = fmt.Sprintf("only %d batches were full", len(full))
		return b
	}
	ratio := float64(full[len(full)-1].Buffers) / float64(full[0].Buffers)
	b.Got, b.Met = fmt.Sprintf("%.2f (%d and %d)", ratio, full[0].Buffers, full[len(full)-1].Buffers), ratio <= 1.2
	return b
}

// RowBound holds what a removed row costs, in batches of the short form or larger.
func RowBound(d measure.Drain) Bound {
	return Bound{
		Work: "buffers and bytes of WAL for a removed event", Want: "at most 3 and 65",
		Got: fmt.Sprintf("%.2f and %.1f", d.BuffersPerRow(), d.WALPerRow()), Met: d.Removed > 0 && d.BuffersPerRow() <= 3 && d.WALPerRow() <= 65, Cost: true,
	}
}

// HeldBound holds that held rows at the head are read once in a drain and not once in a batch.
func HeldBound(h Held) Bound {
	ratio := float64(h.With.Buffers-h.Reading) / float64(h.Without.Buffers)
	return Bound{
		Work: fmt.Sprintf("%d held rows at the head: buffers less one reading of them, against none", h.Rows), Want: "at most 1.2",
		Got: fmt.Sprintf("%.2f (%d less %d, against %d)", ratio, h.With.Buffers, h.Reading, h.Without.Buffers), Met: ratio <= 1.2, Cost: true,
	}
}

// OwnerBound holds that the owner lock writes little.
func OwnerBound(o Owner) Bound {
	ratio := float64(o.Locked.WAL) / float64(o.Free.WAL)
	return Bound{
		Work: fmt.Sprintf("owner lock against none, %d rows an owner: WAL", o.PerOwner), Want: "more by 5 % at most",
		Got: more(ratio), Met: o.Locked.WAL > o.Free.WAL && ratio <= 1.05, Cost: true,
	}
}

func more(ratio float64) string { return fmt.Sprintf("%+.1f %%", 100*(ratio-1)) }

// IdleBound holds that a sweep with nothing due reads next to nothing.
func IdleBound(i Idle) Bound {
	return Bound{
		Work: fmt.Sprintf("idle sweep of %d events, cutoff older than the oldest row", i.Rows), Want: "at most 10 buffers",
		Got: fmt.Sprint(i.Before), Met: i.Before > 0 && i.Before <= 10, Cost: true,
	}
}

// AfterBound holds that after a drain a sweep reads the held rows once.
func AfterBound(i Idle) Bound {
	return Bound{
		Work: fmt.Sprintf("idle sweep after a drain, %d held rows", i.Held), Want: fmt.Sprintf("one reading of them (%d) plus 10", i.Reading),
		Got: fmt.Sprint(i.After), Met: i.After <= i.Reading+10,
	}
}

// FirstBound holds that the first batch on the jobs does not pass what waits before them.
func FirstBound(ours, theirs First) Bound {
	ratio := float64(theirs.Buffers) / float64(ours.Buffers)
	return Bound{
		Work: fmt.Sprintf("first batch of jobs, %s-led index, limit %d, against %s at %d", ours.Index, ours.Limit, theirs.Subject, theirs.Limit), Want: "at least 20 times fewer buffers",
		Got: fmt.Sprintf("%.1f (%d against %d)", ratio, ours.Buffers, theirs.Buffers), Met: ratio >= 20, Cost: true,
	}
}

// ratioBound is a bound on a ratio.
func ratioBound(work, want string, got, least float64, note string) Bound {
	return Bound{Work: work, Want: want, Got: fmt.Sprintf("%.2f%s", got, note), Met: got >= least}
}

// named is the row of a subject. The subjects are ours to name, so one that is missing is a mistake of the program.
func named(rows []Row, subject string) Row {
	for _, r := range rows {
		if r.Subject == subject {
			return r
		}
	}
	panic("bench: no subject " + subject)
}

// bounds are all that must hold, in the order in which they are shown, of the parts that were measured.
func (r *Result) bounds() (bs []Bound) {
	for _, part := range []struct {
		name   string
		bounds func() []Bound
	}{
		{"events", r.eventBounds}, {"curves", r.curveBounds}, {"owners", r.ownerBounds}, {"idle", r.idleBounds}, {"first", r.firstBounds},
		{"domain", r.domainBounds}, {"memory", r.memoryBounds}, {"load", r.loadBounds},
	} {
		if r.has(part.name) {
			bs = append(bs, part.bounds()...)
		}
	}
	return bs
}

func (r *Result) eventBounds() []Bound {
	ours, theirs, adapted := named(r.Events, "ours"), named(r.Events, "ctid IN"), named(r.Events, "ours, adapted")
	if anew := named(r.Events, "ctid IN, planned anew"); anew.RowsPerSecond > theirs.RowsPerSecond {
		theirs = anew
	}
	return []Bound{
		ratioBound(fmt.Sprintf("drain of (a), %d a batch, against %s", ours.Limit, theirs.Subject), "at least 2 times its rows/s", ours.RowsPerSecond/theirs.RowsPerSecond, 2, ""),
		ratioBound("drain of (a), adapted batches, against one DELETE", "at least 0.8 times its rows/s", adapted.OfFirst, 0.8, fmt.Sprintf(" (rounds %.2f)", adapted.Ratios)),
		{Work: "drain of (a), adapted batches: the slowest batch", Want: "at most 100 ms", Got: fmt.Sprintf("%.0f ms", adapted.Max), Met: adapted.Max <= 100},
	}
}

func (r *Result) curveBounds() (bs []Bound) {
	for _, c := range r.Curves {
		d := measure.Drain{Batches: c.Batches}
		switch c.Name {
		case "ours":
			for _, batch := range c.Batches {
				d.Removed += batch.Removed
				d.Cost = d.Cost.Plus(batch.Cost)
			}
			bs = append(bs, RowBound(d))
		case oldSnapshot("ours"):
			bs = append(bs, FlatBound(d, c.Limit))
		}
	}
	return append(bs, HeldBound(r.Held))
}

func (r *Result) ownerBounds() (bs []Bound) {
	for n, o := range r.Owners {
		wal, took := OwnerBound(o), Bound{
			Work: fmt.Sprintf("owner lock against none, %d rows an owner: time", o.PerOwner), Want: "more by 10 % at most", Got: more(o.Time), Met: o.Time <= 1.10,
		}
		if n > 0 { // every row its own owner: what it costs is shown, and bounds nothing
			wal.Want, wal.Cost, wal.Shown, took.Want, took.Shown = "", false, true, "", true
		}
		bs = append(bs, wal, took)
	}
	return bs
}

func (r *Result) idleBounds() (bs []Bound) {
	for _, i := range r.Idle {
		bs = append(bs, IdleBound(i))
	}
	for _, i := range r.Idle {
		bs = append(bs, AfterBound(i))
	}
	return bs
}

func (r *Result) firstBounds() (bs []Bound) {
	for _, led := range []string{"state", "age"} {
		var mine, id First
		for _, f := range r.First {
			switch {
			case f.Index != led || f.Limit != r.Size.JobsLimit:
			case f.Subject == "ours":
				mine = f
			case f.Subject == "id IN, OR-ed":
				id = f
			}
		}
		bs = append(bs, FirstBound(mine, id))
	}
	return bs
}

func (r *Result) memoryBounds() []Bound {
	memory := Bound{Work: fmt.Sprintf("prunectl's peak memory over %d rows", r.Memory.Rows), Want: "at most 40 MB, flat", Got: "not measured on this system"}
	if m := r.Memory; m.OK {
		memory.Got, memory.Met = fmt.Sprintf("%.1f MB, %.1f MB after a tenth of the time", m.MB, m.Tenth), m.MB <= 40
	}
	return []Bound{memory}
}

func (r *Result) loadBounds() []Bound {
	alone, beside, other := r.Foreground[0], r.Foreground[1], r.Foreground[3]
	return []Bound{
		ratioBound(fmt.Sprintf("pgbench at %.0f tps, half its maximum, beside the drain", beside.Rate), "at least 0.95 of that rate", beside.TPS/beside.Rate, 0.95,
			fmt.Sprintf(" (alone %.2f, beside one DELETE %.2f)", alone.TPS/alone.Rate, other.TPS/other.Rate)),
		{
			Work: "the same: p99 of its latency against alone", Want: "at most 1.5 times",
			Got: fmt.Sprintf("%.2f (%.1f ms against %.1f ms; beside one DELETE %.1f ms)", beside.P99/alone.P99, beside.P99, alone.P99, other.P99), Met: beside.P99 <= 1.5*alone.P99,
		},
	}
}

// Broken are the bounds on costs that do not hold.
func (r *Result) Broken() (broken []Bound) {
	for _, b := range r.Bounds {
		if b.Cost && !b.Met {
			broken = append(broken, b)
		}
	}
	return broken
}
