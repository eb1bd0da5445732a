package study

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prunectl/prunectl/bench/internal/measure"
	"github.com/prunectl/prunectl/bench/internal/workload"
	"github.com/prunectl/prunectl/policy"
)

// Result is all that a run of the bench found.
type Result struct {
	When    time.Time `json:"when"`
	Command string    `json:"command"`
	Server  string    `json:"server"`
	Own     bool      `json:"own_server"`
	Cores   int       `json:"cores"`
	Size    Size      `json:"size"`
	Parts   []string  `json:"parts"` // that were measured

	Events     []Row          `json:"events"` // (a)
	Jobs       []Row          `json:"jobs"`   // (d), state-led
	Curves     []Curve        `json:"curves"`
	Held       Held           `json:"held_head"`
	Owners     []Owner        `json:"owner_lock"`
	Idle       []Idle         `json:"idle"`
	First      []First        `json:"first_batches"`
	Memory     measure.Memory `json:"memory"`
	Foreground []Foreground   `json:"foreground"`
	Domain     *Domain        `json:"domain,omitempty"` // (c)

	Bounds []Bound `json:"bounds"`
}

// part is one question of the bench.
type part struct {
	name, what string
	images     bool // with full page images; else without, or as do says
	do         func(*Bench, context.Context, *Result) error
}

var parts = []part{
	{"curves", "what the batches of a drain cost", false, (*Bench).curves},
	{"owners", "the owner lock", false, (*Bench).owners},
	{"idle", "idle sweeps", false, (*Bench).idle},
	{"first", "first batches of jobs", false, (*Bench).firsts},
	{"domain", "domain events", false, (*Bench).domain},
	{"events", "subjects on events", false, (*Bench).events},
	{"jobs", "subjects on jobs", false, (*Bench).jobs},
	{"load", "a load beside a drain", true, (*Bench).load},
	{"memory", "the command's memory", true, (*Bench).memory},
}

// Parts are the names of what the bench asks, in the order in which it does.
func Parts() (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

func (r *Result) has(part string) bool { return slices.Contains(r.Parts, part) }

// Everything is the whole bench, or those of its parts that are named. What fails ends it: a figure that is missing would be
// taken for one that is fine.
func (b *Bench) Everything(ctx context.Context, only ...string) (r Result, err error) {
	r.When, r.Server, r.Own, r.Cores, r.Size = time.Now().UTC().Truncate(time.Second), "PostgreSQL "+b.Place.Version, b.Place.Own, b.Place.Cores, b.Size
	for _, p := range parts {
		if len(only) > 0 && !slices.Contains(only, p.name) {
			continue
		}
		b.Tell("%s", p.what)
		if err := b.Place.Images(ctx, p.images); err != nil {
			return r, err
		}
		if err := p.do(b, ctx, &r); err != nil {
			return r, fmt.Errorf("%s: %w", p.what, err)
		}
		r.Parts = append(r.Parts, p.name)
	}
	r.Bounds = r.bounds()
	return r, nil
}

func (b *Bench) load(ctx context.Context, r *Result) (err error) {
	r.Foreground, err = b.Foreground(ctx)
	return err
}

func (b *Bench) memory(ctx context.Context, r *Result) (err error) {
	r.Memory, err = measure.Command(ctx, b.Place, workload.Log{Rows: b.Size.Log})
	return err
}

func (b *Bench) curves(ctx context.Context, r *Result) error {
	add := func(name string, s workload.Subject, d measure.Drain) {
		r.Curves = append(r.Curves, Curve{Name: name, Limit: s.Limit, Batches: d.Batches})
	}
	ours, theirs := OursAt(b.Size.Limit), workload.CtidIn(b.Size.Limit)
	plain, err := b.Drained(ctx, b.Size.a(), ours)
	if err != nil {
		return err
	}
	add("ours", ours, plain)
	for _, s := range []workload.Subject{OursAt(b.Size.OldLimit), workload.CtidIn(b.Size.OldLimit)} {
		d, err := b.OldSnapshot(ctx, s)
		if err != nil {
			return err
		}
		add(oldSnapshot(s.Name), s, d)
	}
	if r.Held, err = b.heldHead(ctx, plain, ours); err != nil {
		return err
	}
	for _, s := range []workload.Subject{ours, theirs} {
		d, err := b.Drained(ctx, b.Size.b(), s)
		if err != nil {
			return err
		}
		add(s.Name+", held rows at the head", s, d)
	}
	return nil
}

// oldSnapshot names the curve of a subject with an older snapshot open.
func oldSnapshot(subject string) string { return subject + ", older snapshot open" }

func (b *Bench) owners(ctx context.Context, r *Result) error {
	for _, e := range []workload.Events{b.Size.Events, b.Size.Single} {
		o, err := b.OwnerLock(ctx, e)
		if err != nil {
			return err
		}
		r.Owners = append(r.Owners, o)
	}
	if err := b.Place.Images(ctx, true); err != nil {
		return err
	}
	for n, e := range []workload.Events{b.Size.Events, b.Size.Single} {
		if err := b.OwnerTimes(ctx, e, &r.Owners[n]); err != nil {
			return err
		}
	}
	return nil
}

// idle looks at the population in three sizes: over its history, and with it over the rows of live runs.
func (b *Bench) idle(ctx context.Context, r *Result) error {
	for _, part := range []int{20, 4, 1} {
		e := b.Size.Events
		e.Runs = e.Runs / part / 50 * 50
		i, err := b.IdleSweep(ctx, e)
		if err != nil {
			return err
		}
		r.Idle = append(r.Idle, i)
	}
	return nil
}

func (b *Bench) firsts(ctx context.Context, r *Result) error {
	for _, ageLed := range []bool{false, true} {
		j := b.Size.Jobs
		j.AgeLed = ageLed
		for _, limit := range []int{b.Size.JobsLimit, 5 * b.Size.JobsLimit} {
			for _, s := range []workload.Subject{OurJobs(limit), workload.JobsIDIn(limit), workload.JobsIDInByState(limit), workload.JobsFetched(limit)} {
				f, err := b.FirstBatch(ctx, j, s)
				if err != nil {
					return err
				}
				r.First = append(r.First, f)
			}
		}
	}
	return nil
}

// larger is our sweep with a limit that only the time holds back.
func larger() workload.Subject {
	s := workload.EventsSweep(false)
	s.Batch = policy.Batch{Limit: 20_000, Target: 50 * time.Millisecond}
	return workload.Drained("ours, adapted to 50 ms", s, workload.Now)
}

// Subjects are those that drain events, the one first that the others are compared with.
func (b *Bench) Subjects() []workload.Subject {
	l := b.Size.Limit
	return []workload.Subject{
		workload.Unbounded(), Adapted(), OursAt(l), Final(l), larger(), workload.AgeRange(l), workload.CtidIn(l), workload.CtidInAnew(l), workload.KeysFetched(l),
	}
}

func (b *Bench) events(ctx context.Context, r *Result) (err error) {
	r.Events, err = b.Compare(ctx, b.Size.a(), b.Subjects(), b.Size.Rounds)
	return err
}

// JobSubjects are those that drain jobs, likewise.
func (b *Bench) JobSubjects() []workload.Subject {
	l := b.Size.Limit
	return []workload.Subject{workload.JobsUnbounded(), OurJobs(l), workload.JobsIDIn(l), workload.JobsIDInByState(l), workload.JobsFetched(l)}
}

// jobs takes times once: the slow subjects are slower by far more than rounds differ.
func (b *Bench) jobs(ctx context.Context, r *Result) (err error) {
	r.Jobs, err = b.Compare(ctx, b.Size.Jobs.Population(), b.JobSubjects(), 1)
	return err
}
