package study

import "fmt"

// of names a population.
func (i DomainIdle) of() string {
	return fmt.Sprintf("%d live (%d held), history %d", i.Live(), i.Held, i.History)
}

// DomainIdleBound holds that the four arms read next to nothing of domain events that are not due.
func DomainIdleBound(i DomainIdle) Bound {
	return Bound{
		Work: "idle sweep of domain events, four arms after a VACUUM: " + i.of(), Want: "at most 40 buffers",
		Got: fmt.Sprint(i.Total()), Met: i.Total() > 0 && i.Total() <= 40, Cost: true,
	}
}

// DomainFlatBound holds that it stays so. What may grow is how deep an index is, which at so few buffers is more than a fifth.
func DomainFlatBound(base, larger DomainIdle) Bound {
	return Bound{
		Work: "the same: " + larger.of() + ", against " + base.of(), Want: "more by 20 % at most, or by a page for each arm",
		Got: fmt.Sprintf("%s (%d against %d)", more(float64(larger.Total())/float64(base.Total())), larger.Total(), base.Total()),
		Met: base.Total() > 0 && (10*larger.Total() <= 12*base.Total() || larger.Total() <= base.Total()+int64(len(larger.Arms))), Cost: true,
	}
}

// RecordBound holds what retention adds to the WAL of work, in percent.
func RecordBound(r Record, percent int) Bound {
	return Bound{
		Work: fmt.Sprintf("WAL of %s against tables without retention, %s", r.Kind, r.Of), Want: fmt.Sprintf("more by %d %% at most", percent),
		Got: fmt.Sprintf("%s (%.0f against %.0f bytes)", more(r.ratio()), r.WholeWAL(), r.PlainWAL()),
		Met: r.Plain.WAL > 0 && 100*r.Whole.WAL <= int64(100+percent)*r.Plain.WAL, Cost: true,
	}
}

// recordPercents are the bounds of kinds; others are shown.
var recordPercents = map[string]int{"default event": 5, "event with a policy": 25, "event with a window of its own": 25}

// RecordBounds holds them all.
func RecordBounds(all []Record) (bs []Bound) {
	for _, r := range all {
		percent, bound := recordPercents[r.Kind]
		b := RecordBound(r, percent)
		if !bound {
			b.Want, b.Cost, b.Shown = "", false, true
		}
		bs = append(bs, b)
	}
	return bs
}

// FanoutBound holds that the chunks of one event cost the same from the first to the last, with an older snapshot open.
func FanoutBound(c Curve, deliveries int) Bound {
	b := Bound{
		Work: fmt.Sprintf("an event with %d deliveries, %d a chunk, older snapshot open: buffers of the last full chunk against the first", deliveries, c.Limit), Want: "at most 1.2", Cost: true,
	}
	full := c.Chunks()
	if len(full) != deliveries/c.Limit {
		b.Got = fmt.Sprintf("%d chunks were full", len(full))
		return b
	}
	first, last := full[0].Buffers, full[len(full)-1].Buffers
	b.Got, b.Met = fmt.Sprintf("%.2f (%d and %d)", float64(last)/float64(first), first, last), 10*last <= 12*first
	return b
}

func shown(work, got string) Bound { return Bound{Work: work, Got: got, Shown: true} }

func (r *Result) domainBounds() (bs []Bound) {
	d := r.Domain
	for _, i := range d.Idle {
		bs = append(bs, DomainIdleBound(i))
	}
	for _, i := range d.Idle[1:] {
		bs = append(bs, DomainFlatBound(d.Idle[0], i))
	}
	for _, i := range d.Idle {
		first, next := i.BeforeVacuum()
		bs = append(bs, shown("the same, the two sweeps before the VACUUM: "+i.of(), fmt.Sprintf("%d and %d buffers", first, next)))
	}
	bs = append(bs,
		shown("the same, the first sweep of a session, which looks up functions and types", fmt.Sprintf("%d buffers", total(d.Idle[0].Session))),
		shown(fmt.Sprintf("the same, beside %d SETTLED events that are still owed", d.Backlog.Events), fmt.Sprintf("%d buffers", d.Backlog.Buffers)))
	bs = append(bs, RecordBounds(d.Records)...)
	for _, k := range d.Records {
		bs = append(bs, shown(fmt.Sprintf("time of %s against tables without retention", k.Kind), more(k.Time)))
	}
	var all int64
	last := int64(0)
	for _, b := range d.Fanout.Batches {
		if all += b.Buffers; b.Removed > 0 {
			last = b.Buffers
		}
	}
	bs = append(bs, FanoutBound(d.Fanout, r.Size.Domain.Fanout),
		shown("the same: buffers for a delivery, all batches together, and of the batch that removes the event", fmt.Sprintf("%.2f and %d", perRow(all, r.Size.Domain.Fanout), last)))
	ours := named(d.Drains, "ours")
	return append(bs, shown(fmt.Sprintf("drain of due domain events with their deliveries, %d rows a batch, against %s", ours.Limit, d.Drains[0].Subject),
		fmt.Sprintf("%.2f times its rows/s, %.2f against %.2f buffers a row", ours.OfFirst, ours.BuffersPerRow, d.Drains[0].BuffersPerRow)))
}
