package study

import (
	"context"
	"fmt"
	"time"

	"github.com/prunectl/prunectl/bench/internal/measure"
	"github.com/prunectl/prunectl/bench/internal/place"
	"github.com/prunectl/prunectl/bench/internal/workload"
)

// Curve is what each batch of a drain cost.
type Curve struct {
	Name    string          `json:"name"`
	Limit   int             `json:"limit"`
	Batches []measure.Batch `json:"batches"`
}

// Drained is the subject's whole drain with the cost of each batch.
func (b *Bench) Drained(ctx context.Context, pop place.Population, s workload.Subject) (measure.Drain, error) {
	return measure.Run(ctx, b.Place, pop, s, measure.Choice{Costs: true})
}

// OldSnapshot drains (a) while another session could still ask for every row that was there at the beginning, so that
// nothing dead is forgotten.
func (b *Bench) OldSnapshot(ctx context.Context, s workload.Subject) (d measure.Drain, err error) {
	return b.older(ctx, b.Size.a(), s)
}

func (b *Bench) older(ctx context.Context, pop place.Population, s workload.Subject) (d measure.Drain, err error) {
	err = b.on(ctx, pop, func(c *place.Clone) error {
		old, err := c.Connect(ctx)
		if err != nil {
			return err
		}
		for _, sql := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM pg_class"} {
			if _, err := old.Exec(ctx, sql); err != nil {
				return err
			}
		}
		d, err = measure.Run(ctx, b.Place, pop, s, measure.Choice{Costs: true, Clone: c})
		return err
	})
	return d, err
}

// Held is what held rows at the head of a table cost a drain.
type Held struct {
	Without place.Cost `json:"without"`
	With    place.Cost `json:"with"`
	Reading int64      `json:"reading"` // buffers of one reading of the held rows, through the index alone
	Rows    int        `json:"rows"`
}

// HeldHead drains (a) and (b).
func (b *Bench) HeldHead(ctx context.Context, s workload.Subject) (h Held, err error) {
	a, err := b.Drained(ctx, b.Size.a(), s)
	if err != nil {
		return h, err
	}
	return b.heldHead(ctx, a, s)
}

func (b *Bench) heldHead(ctx context.Context, a measure.Drain, s workload.Subject) (h Held, err error) {
	with, err := b.Drained(ctx, b.Size.b(), s)
	if err != nil {
		return h, err
	}
	if with.Removed != a.Removed || a.Removed == 0 {
		return h, fmt.Errorf("%s removed %d rows of (a) and %d of (b)", s.Name, a.Removed, with.Removed)
	}
	reading, err := b.reading(ctx, b.Size.b(), workload.HeadEnd)
	return Held{Without: a.Cost, With: with.Cost, Reading: reading, Rows: b.Size.Head}, err
}

// reading is what it costs to count the rows before a time in an untouched population.
func (b *Bench) reading(ctx context.Context, pop place.Population, before time.Time) (buffers int64, err error) {
	err = b.on(ctx, pop, func(c *place.Clone) (err error) {
		buffers, err = count(ctx, c, before)
		return err
	})
	return buffers, err
}

// count reads the rows before a time through the index.
func count(ctx context.Context, clone *place.Clone, before time.Time) (int64, error) {
	conn, err := clone.Connect(ctx)
	if err != nil {
		return 0, err
	}
	for _, sql := range []string{"SET enable_seqscan = off", "SET enable_bitmapscan = off", "SET max_parallel_workers_per_gather = 0"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return 0, err
		}
	}
	was, err := clone.Cost(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := conn.Exec(ctx, workload.EventsReading, before); err != nil {
		return 0, err
	}
	now, err := clone.Cost(ctx)
	return now.Minus(was).Buffers, err
}

// Owner is what locking the owners costs, beside a policy that says that terminal states are final.
type Owner struct {
	PerOwner int           `json:"rows_per_owner"`
	Locked   measure.Drain `json:"locked"`
	Free     measure.Drain `json:"free"`
	Time     float64       `json:"time_ratio"` // of the drains, locked to free; 0: not taken
}

// OwnerLock drains a population of events with its owners locked and without.
func (b *Bench) OwnerLock(ctx context.Context, e workload.Events) (o Owner, err error) {
	o.PerOwner = e.PerRun
	if o.Locked, err = b.Drained(ctx, e.Population(), OursAt(ownerLimit)); err != nil {
		return o, err
	}
	if o.Free, err = b.Drained(ctx, e.Population(), Final(ownerLimit)); err == nil && o.Free.Removed != o.Locked.Removed {
		err = fmt.Errorf("with its owners locked the drain removed %d rows, without %d", o.Locked.Removed, o.Free.Removed)
	}
	return o, err
}

// Idle is what a sweep costs that finds nothing to remove.
type Idle struct {
	Rows    int   `json:"rows"`    // of the population
	Held    int   `json:"held"`    // rows past their window that a live run protects
	Before  int64 `json:"before"`  // buffers, with a cutoff older than every row
	After   int64 `json:"after"`   // buffers, after a drain and a VACUUM
	Reading int64 `json:"reading"` // buffers of one reading of the held rows through the index, then
}

// longAgo is a time at which nothing is past its window yet.
var longAgo = workload.Now.AddDate(-1, 0, 0)

// IdleSweep asks for the sweep's batches before anything is due, and after a drain.
func (b *Bench) IdleSweep(ctx context.Context, e workload.Events) (i Idle, err error) {
	err = b.on(ctx, e.Population(), func(c *place.Clone) (err error) {
		if i, err = b.idleBefore(ctx, c, e, OursIdle(longAgo)); err != nil {
			return err
		}
		one := func(s workload.Subject) (measure.Drain, error) {
			return measure.Run(ctx, b.Place, e.Population(), s, measure.Choice{Costs: true, Clone: c})
		}
		if _, err = one(OursAt(b.Size.Limit)); err != nil {
			return err
		}
		if err = c.Exec(ctx, "VACUUM"); err != nil {
			return err
		}
		d, err := one(OursIdle(workload.Now))
		if err != nil {
			return err
		}
		for _, batch := range d.Batches {
			i.Held += batch.Examined
		}
		i.After = d.Buffers
		i.Reading, err = count(ctx, c, workload.EventsCutoff().Time())
		return err
	})
	return i, err
}

// IdleBefore asks a subject, at a time at which nothing is due yet, on a clone that was prepared.
func (b *Bench) IdleBefore(ctx context.Context, e workload.Events, at func(time.Time) workload.Subject, prepare ...string) (i Idle, err error) {
	err = b.on(ctx, e.Population(), func(c *place.Clone) (err error) {
		i, err = b.idleBefore(ctx, c, e, at(longAgo))
		return err
	}, prepare...)
	return i, err
}

func (b *Bench) idleBefore(ctx context.Context, c *place.Clone, e workload.Events, s workload.Subject) (Idle, error) {
	d, err := measure.Run(ctx, b.Place, e.Population(), s, measure.Choice{Costs: true, Clone: c})
	if err == nil && d.Removed > 0 {
		err = fmt.Errorf("%s removed %d rows before any was due", s.Name, d.Removed)
	}
	return Idle{Rows: e.Rows(), Before: d.Buffers}, err
}

// First is the first batch of a subject on the jobs.
type First struct {
	Subject string `json:"subject"`
	Index   string `json:"index"` // "state" or "age" leads
	Limit   int    `json:"limit"`
	measure.Batch
}

// FirstBatch runs the first batch on the jobs and no more.
func (b *Bench) FirstBatch(ctx context.Context, j workload.Jobs, s workload.Subject) (f First, err error) {
	f = First{Subject: s.Name, Index: "state", Limit: s.Limit}
	if j.AgeLed {
		f.Index = "age"
	}
	d, err := measure.Run(ctx, b.Place, j.Population(), s, measure.Choice{Costs: true, Batches: 1})
	if err != nil {
		return f, err
	}
	if f.Batch = d.Batches[0]; f.Removed != min(s.Limit, j.Due) {
		return f, fmt.Errorf("the first batch of %s removed %d rows of the jobs", s.Name, f.Removed)
	}
	return f, nil
}

// OursAt is our sweep of the events in batches of a limit.
func OursAt(limit int) workload.Subject {
	return workload.Ours("ours", workload.EventsSweep(false), workload.Now, limit)
}

// Final is ours without the lock on owners.
func Final(limit int) workload.Subject {
	s := workload.Ours("ours, final", workload.EventsSweep(true), workload.Now, limit)
	s.About = "the same where the policy says that terminal states are final: no owner lock"
	return s
}

// Adapted is our sweep through package drain, at its defaults.
func Adapted() workload.Subject {
	return workload.Drained("ours, adapted", workload.EventsSweep(false), workload.Now)
}

// OursIdle is the sweep in batches that hold all that a drain leaves behind.
func OursIdle(now time.Time) workload.Subject {
	return workload.Ours("ours", workload.EventsSweep(false), now, 100_000)
}

// OurJobs is our sweep of the jobs.
func OurJobs(limit int) workload.Subject {
	return workload.Ours("ours", workload.JobsSweep(), workload.Now, limit)
}

// Counted is a drain whose costs are counted, without full page images in its WAL.
func (b *Bench) Counted(ctx context.Context, pop place.Population, s workload.Subject) (d measure.Drain, err error) {
	if err = b.Place.Images(ctx, false); err != nil {
		return d, err
	}
	if d, err = b.Drained(ctx, pop, s); err != nil {
		return d, err
	}
	return d, b.Place.Images(ctx, true)
}

// CostBounds measures what bounds on costs are about, and nothing else.
func (b *Bench) CostBounds(ctx context.Context) (bounds []Bound, err error) {
	if err := b.Place.Images(ctx, false); err != nil {
		return nil, err
	}
	ours := OursAt(b.Size.Limit)
	a, err := b.Drained(ctx, b.Size.a(), ours)
	if err != nil {
		return nil, err
	}
	old, err := b.OldSnapshot(ctx, OursAt(b.Size.OldLimit))
	if err != nil {
		return nil, err
	}
	held, err := b.heldHead(ctx, a, ours)
	if err != nil {
		return nil, err
	}
	owner, err := b.OwnerLock(ctx, b.Size.Events)
	if err != nil {
		return nil, err
	}
	idle, err := b.IdleSweep(ctx, b.Size.Events)
	if err != nil {
		return nil, err
	}
	bounds = []Bound{RowBound(a), FlatBound(old, b.Size.OldLimit), HeldBound(held), OwnerBound(owner), IdleBound(idle)}
	for _, ageLed := range []bool{false, true} {
		j := b.Size.Jobs
		j.AgeLed = ageLed
		mine, err := b.FirstBatch(ctx, j, OurJobs(b.Size.JobsLimit))
		if err != nil {
			return nil, err
		}
		theirs, err := b.FirstBatch(ctx, j, workload.JobsIDIn(b.Size.JobsLimit))
		if err != nil {
			return nil, err
		}
		bounds = append(bounds, FirstBound(mine, theirs))
	}
	more, err := b.domainCosts(ctx)
	return append(bounds, more...), err
}
