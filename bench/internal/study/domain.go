package study

import (
	"context"
	"fmt"

	"github.com/prunectl/prunectl/bench/internal/measure"
	"github.com/prunectl/prunectl/bench/internal/place"
	"github.com/prunectl/prunectl/bench/internal/workload"
)

// DomainSize is how large the populations of domain events are.
type DomainSize struct {
	Events  workload.Domain `json:"events"`
	Held    []int           `json:"held"`    // further numbers of events that a dead letter holds
	Due     int             `json:"due"`     // events to be drained, with three deliveries each
	Limit   int             `json:"limit"`   // of a batch, in rows
	Backlog int             `json:"backlog"` // SETTLED events that are still owed
	Fanout  int             `json:"fanout"`  // deliveries of one event
	Chunk   int             `json:"chunk"`   // of them
	Pairs   int             `json:"pairs"`   // of statements that record events
	Each    int             `json:"each"`    // events that each of them records
}

// variants are the populations whose idle cost is compared: the one of the size, ten times its live events, ten times its
// history, and those with more held events.
func (s DomainSize) variants() []workload.Domain {
	all := []workload.Domain{s.Events, s.Events.Times(10, 1), s.Events.Times(1, 10)}
	for _, held := range s.Held {
		d := s.Events
		d.Held = held
		all = append(all, d)
	}
	return all
}

// Domain is what was found of domain events.
type Domain struct {
	Idle    []DomainIdle `json:"idle"` // in the order of the size's variants
	Backlog Backlog      `json:"backlog"`
	Records []Record     `json:"records"`
	Fanout  Curve        `json:"fanout"`
	Drains  []Row        `json:"drains"`
}

// ArmCost is what one arm, or another subject, read.
type ArmCost struct {
	Arm     string `json:"arm"`
	Buffers int64  `json:"buffers"`
}

// DomainIdle is what a sweep of domain events costs of which none is due.
type DomainIdle struct {
	workload.Domain
	Deliveries int       `json:"deliveries"`
	Fresh      []ArmCost `json:"before_vacuum"`       // the first sweep after dead letters parked events
	Again      []ArmCost `json:"before_vacuum_again"` // and the next
	Arms       []ArmCost `json:"arms"`                // after a VACUUM
	Session    []ArmCost `json:"first_of_session"`    // the sweep before that one, the first of its session: it looks up functions and types
	Shapes     []ArmCost `json:"shapes"`              // other subjects, then
}

func total(arms []ArmCost) (n int64) {
	for _, a := range arms {
		n += a.Buffers
	}
	return n
}

// Total is what the arms read together, after a VACUUM.
func (i DomainIdle) Total() int64 { return total(i.Arms) }

// BeforeVacuum is what they read before it: in the first sweep, and in the next.
func (i DomainIdle) BeforeVacuum() (first, next int64) { return total(i.Fresh), total(i.Again) }

// OursDomain is the sweep of domain events.
func (b *Bench) OursDomain() workload.Subject {
	return workload.DomainOurs(b.Size.Domain.Limit, workload.Now)
}

// DomainIdle asks for the sweep's batches after dead letters parked events, and after a VACUUM; then other subjects.
func (b *Bench) DomainIdle(ctx context.Context, e workload.Domain) (i DomainIdle, err error) {
	i.Domain, i.Deliveries = e, e.Deliveries()
	err = b.on(ctx, e.Population(), func(c *place.Clone) (err error) {
		sweeps, err := b.domainArms(ctx, c)
		if err != nil {
			return err
		}
		i.Fresh, i.Again = sweeps[1], sweeps[2]
		if err = c.Exec(ctx, "VACUUM (ANALYZE)"); err != nil {
			return err
		}
		if sweeps, err = b.domainArms(ctx, c); err != nil {
			return err
		}
		i.Session, i.Arms = sweeps[0], sweeps[1]
		if err = c.Exec(ctx, workload.WholeOwn, "ANALYZE domain_events"); err != nil {
			return err
		}
		for _, s := range b.DomainShapes() {
			buffers, err := b.again(ctx, c, s)
			if err != nil {
				return err
			}
			i.Shapes = append(i.Shapes, ArmCost{s.Name, buffers})
		}
		return nil
	}, workload.Park)
	return i, err
}

// nothingDue runs a subject that has nothing to remove.
func (b *Bench) nothingDue(ctx context.Context, c *place.Clone, s workload.Subject) (measure.Drain, error) {
	d, err := measure.Run(ctx, b.Place, place.Population{}, s, measure.Choice{Costs: true, Clone: c})
	if err == nil && d.Removed > 0 {
		err = fmt.Errorf("%s removed %d rows before any was due", s.Name, d.Removed)
	}
	return d, err
}

// again is the buffers of a subject's second sweep in a session: what the first looks up, functions and types, is known then.
func (b *Bench) again(ctx context.Context, c *place.Clone, s workload.Subject) (buffers int64, err error) {
	d, err := b.nothingDue(ctx, c, workload.Twice(s))
	for _, batch := range d.Batches[len(d.Batches)/2:] {
		buffers += batch.Buffers
	}
	return buffers, err
}

// domainArms sweeps three times in one session: for its first sweep at a time at which there was no event yet, and so without
// having looked at one.
func (b *Bench) domainArms(ctx context.Context, c *place.Clone) (sweeps [3][]ArmCost, err error) {
	d, err := b.nothingDue(ctx, c, workload.DomainOurs(b.Size.Domain.Limit, longAgo, workload.Now, workload.Now))
	if err != nil {
		return sweeps, err
	}
	const arms = 4
	if len(d.Batches) != len(sweeps)*arms {
		return sweeps, fmt.Errorf("idle sweeps of domain events took %d batches; each has %d arms", len(d.Batches), arms)
	}
	for n, batch := range d.Batches {
		sweeps[n/arms] = append(sweeps[n/arms], ArmCost{batch.Arm, batch.Buffers})
	}
	return sweeps, nil
}

// DomainShapes are the subjects beside ours on domain events of which none is due.
func (b *Bench) DomainShapes() []workload.Subject {
	l := b.Size.Domain.Limit
	return []workload.Subject{workload.DomainByPolicy(l), workload.DomainORed(l), workload.OwnByExpiry(l), workload.OwnFiltered(l)}
}

// ShapeIdle asks one of them, or another subject, on the population after a VACUUM.
func (b *Bench) ShapeIdle(ctx context.Context, e workload.Domain, s workload.Subject, prepare ...string) (i DomainIdle, err error) {
	i.Domain, i.Deliveries = e, e.Deliveries()
	err = b.on(ctx, e.Parked(), func(c *place.Clone) error {
		buffers, err := b.again(ctx, c, s)
		i.Arms = []ArmCost{{s.Name, buffers}}
		return err
	}, prepare...)
	return i, err
}

// Backlog is what events cost an idle sweep that are still owed.
type Backlog struct {
	Events  int   `json:"events"`
	Buffers int64 `json:"buffers"`
}

// OwedBacklog asks for the sweep's batches beside events that are declared SETTLED and not settled yet.
func (b *Bench) OwedBacklog(ctx context.Context) (g Backlog, err error) {
	g.Events = b.Size.Domain.Backlog
	err = b.on(ctx, b.Size.Domain.Events.Parked(), func(c *place.Clone) (err error) {
		g.Buffers, err = b.again(ctx, c, b.OursDomain())
		return err
	}, workload.Backlog(g.Events)...)
	return g, err
}

// FanoutChunks lets a subject empty one event with many deliveries while an older snapshot is open.
func (b *Bench) FanoutChunks(ctx context.Context, s workload.Subject) (Curve, error) {
	d, err := b.older(ctx, b.Size.Domain.Events.WithFanout(b.Size.Domain.Fanout), s)
	return Curve{Name: s.Name, Limit: s.Limit, Batches: d.Batches}, err
}

// Chunks are the full chunks of a drain.
func (c Curve) Chunks() []measure.Batch { return measure.Drain{Batches: c.Batches}.Full(c.Limit) }

// OursChunks is the sweep whose batches are chunks.
func (b *Bench) OursChunks() workload.Subject {
	return workload.DomainOurs(b.Size.Domain.Chunk, workload.Now)
}

// DomainSubjects are those that drain domain events, the one first that the others are compared with.
func (b *Bench) DomainSubjects() []workload.Subject {
	l := b.Size.Domain.Limit
	return []workload.Subject{workload.DomainByPolicy(l), b.OursDomain(), workload.DomainORed(l)}
}

// DomainDue is the population that they drain.
func (b *Bench) DomainDue() place.Population { return b.Size.Domain.Events.WithDue(b.Size.Domain.Due) }

// domain is all about domain events.
func (b *Bench) domain(ctx context.Context, r *Result) (err error) {
	var d Domain
	for _, e := range b.Size.Domain.variants() {
		i, err := b.DomainIdle(ctx, e)
		if err != nil {
			return err
		}
		d.Idle = append(d.Idle, i)
		b.Tell("idle sweep of domain events, %s: %d buffers", i.of(), i.Total())
	}
	if d.Backlog, err = b.OwedBacklog(ctx); err != nil {
		return err
	}
	if d.Fanout, err = b.FanoutChunks(ctx, b.OursChunks()); err != nil {
		return err
	}
	if d.Records, err = b.Records(ctx); err != nil {
		return err
	}
	if d.Drains, err = b.Compare(ctx, b.DomainDue(), b.DomainSubjects(), min(2, b.Size.Rounds)); err != nil {
		return err
	}
	r.Domain = &d
	return nil
}

// domainCosts measures what bounds on costs of domain events are about.
func (b *Bench) domainCosts(ctx context.Context) (bounds []Bound, err error) {
	var all []DomainIdle
	for _, e := range b.Size.Domain.variants() {
		i, err := b.DomainIdle(ctx, e)
		if err != nil {
			return nil, err
		}
		all, bounds = append(all, i), append(bounds, DomainIdleBound(i))
	}
	for _, i := range all[1:] {
		bounds = append(bounds, DomainFlatBound(all[0], i))
	}
	for _, k := range workload.Kinds() {
		percent, bound := recordPercents[k.Name]
		if !bound {
			continue
		}
		r, err := b.Recorded(ctx, k, true)
		if err != nil {
			return nil, err
		}
		bounds = append(bounds, RecordBound(r, percent))
	}
	c, err := b.FanoutChunks(ctx, b.OursChunks())
	return append(bounds, FanoutBound(c, b.Size.Domain.Fanout)), err
}
