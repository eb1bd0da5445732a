package drain

import "time"

// firstLimit is the limit of a drain's first batch: bounded rows are not bounded time, so it starts small.
const firstLimit = 1000

// pace finds the limit at which a batch takes the target time, and foretells how long a batch will take.
type pace struct {
	limit, max int
	target     time.Duration
	// fixed is the part of a batch's time that does not depend on its size (a slow network, a slow commit). Smaller batches
	// do not help against it, so it is not held against them.
	fixed  time.Duration
	steady int // batches since the limit last changed
	last   sample
	recent []sample // the last three; rows is the limit
}

type sample struct {
	rows int
	took time.Duration
}

func newPace(max int, target time.Duration) pace {
	return pace{limit: min(firstLimit, max), max: max, target: target}
}

// ended learns from a batch that was committed. rows are those that it examined, and the children that it removed. They are
// more than the limit where a row went whole with many of them.
func (p *pace) ended(limit, rows int, took time.Duration) {
	p.remember(max(limit, rows), took)
	p.learnFixed(sample{rows, took})
	if limit != p.limit {
		return // it was cut to a ceiling, or searched for one row
	}
	work := took - p.fixed
	ratio := 2.0
	if work > 0 {
		over := max(1, float64(rows)/float64(limit)) // where a row went whole with many children, what counts is how fast they went
		ratio = min(2, max(0.5, over*float64(p.target)/float64(work)))
	}
	p.steady++
	switch {
	case ratio < 0.8:
		p.set(int(float64(limit) * ratio))
	case ratio > 1.25 && 2*rows >= limit: // a batch that found few rows says little about a larger one
		p.set(int(float64(limit) * ratio))
	}
	if p.steady >= 16 && p.fixed > p.target/4 {
		p.set(limit / 2) // to see whether the fixed part is still what it was
	}
}

// timedOut halves the limit, and aims below the timeout from then on. It reports false where there is nothing to halve.
func (p *pace) timedOut(limit int, took, timeout time.Duration) bool {
	p.remember(limit, took)
	if timeout > 0 {
		p.target = min(p.target, timeout/2)
	}
	p.set(limit / 2)
	return limit > 1
}

// searched starts small after a row was stepped over: its neighbours may be like it. From there the limit doubles with
// each batch.
func (p *pace) searched() { p.limit = 1 }

// foretell is how long a batch of this limit would take, judged by the last ones; 0: there is none to judge by.
func (p *pace) foretell(limit int) time.Duration {
	var d time.Duration
	for _, s := range p.recent {
		d = max(d, time.Duration(float64(s.took)*float64(limit)/float64(s.rows)))
	}
	return d
}

func (p *pace) set(limit int) {
	if limit = min(p.max, max(1, limit)); limit != p.limit {
		p.limit, p.steady = limit, 0
	}
}

func (p *pace) remember(limit int, took time.Duration) {
	p.recent = append(p.recent, sample{limit, took})
	if len(p.recent) > 3 {
		p.recent = p.recent[1:]
	}
}

// learnFixed compares the batch with the one before, where their sizes differ enough.
func (p *pace) learnFixed(now sample) {
	small, large := p.last, now
	if small.rows > large.rows {
		small, large = large, small
	}
	if small.rows > 0 && 2*large.rows >= 3*small.rows {
		perRow := max(0, float64(large.took-small.took)/float64(large.rows-small.rows))
		p.fixed = max(0, small.took-time.Duration(perRow*float64(small.rows)))
	}
	p.fixed = min(p.fixed, now.took)
	p.last = now
}
