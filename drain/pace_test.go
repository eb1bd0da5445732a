package drain

import (
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
)

// settle runs full batches whose time is given by the limit, and returns the limit in the end and the largest of the last
// ten.
func settle(top int, cost func(limit int) time.Duration) (last, largest int) {
	p := newPace(top, policy.DefaultTarget)
	for i := range 60 {
		l := p.limit
		p.ended(l, l, cost(l))
		if i >= 50 {
			largest = max(largest, p.limit)
		}
	}
	return p.limit, largest
}

func TestPace(t *testing.T) {
	perRow := func(d time.Duration) func(int) time.Duration {
		return func(l int) time.Duration { return time.Duration(l) * d }
	}
	fixed := func(f, d time.Duration) func(int) time.Duration {
		return func(l int) time.Duration { return f + time.Duration(l)*d }
	}
	for _, c := range []struct {
		name     string
		max      int
		cost     func(int) time.Duration
		from, to int // the limit in the end
	}{
		{"fast rows grow to the limit", 5000, perRow(10 * time.Microsecond), 5000, 5000},
		{"the limit is kept", 700, perRow(time.Microsecond), 700, 700},
		{"slow rows shrink", 5000, perRow(500 * time.Microsecond), 150, 260},
		{"very slow rows shrink to few", 5000, perRow(20 * time.Millisecond), 3, 7},
		{"a row above the target is one row", 5000, perRow(time.Second), 1, 1},
		{"grows to the target", 100_000, perRow(20 * time.Microsecond), 4000, 6300},
		// A slow network or disk is not held against the size of a batch.
		{"a fixed cost above the target", 5000, fixed(200*time.Millisecond, 10*time.Microsecond), 5000, 5000},
		{"a fixed cost above the target, slow rows", 5000, fixed(200*time.Millisecond, 500*time.Microsecond), 120, 330},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, largest := settle(c.max, c.cost)
			if got < c.from || got > c.to || largest > c.to {
				t.Errorf("the limit settles at %d, the largest of the last batches is %d; want %d to %d", got, largest, c.from, c.to)
			}
		})
	}
}

func TestPaceStartsSmallAndDoublesAtMost(t *testing.T) {
	p := newPace(100_000, policy.DefaultTarget)
	if p.limit != 1000 {
		t.Fatalf("it starts at %d; want 1000", p.limit)
	}
	for _, want := range []int{2000, 4000, 8000} {
		p.ended(p.limit, p.limit, time.Microsecond)
		if p.limit != want {
			t.Errorf("the limit is %d; want %d", p.limit, want)
		}
	}
	if small := newPace(50, policy.DefaultTarget); small.limit != 50 {
		t.Errorf("a smaller limit starts at %d; want 50", small.limit)
	}
}

func TestPaceIgnoresWhatSaysLittle(t *testing.T) {
	p := newPace(5000, policy.DefaultTarget)
	p.ended(1000, 3, time.Millisecond) // few rows
	if p.limit != 1000 {
		t.Errorf("a batch that found few rows makes the limit %d", p.limit)
	}
	p.ended(10, 10, time.Millisecond) // cut to a ceiling
	if p.limit != 1000 {
		t.Errorf("a batch that was cut makes the limit %d", p.limit)
	}
	p.ended(1000, 1000, 95*time.Millisecond) // about the target
	if p.limit != 1000 {
		t.Errorf("a batch that takes about the target makes the limit %d", p.limit)
	}
}

// What looked like a fixed cost is looked at again.
func TestPaceForgetsANoisyMoment(t *testing.T) {
	const ms = time.Millisecond
	p := newPace(1000, policy.DefaultTarget)
	p.ended(1000, 1000, 600*ms)
	p.ended(500, 500, 600*ms) // half the rows took as long: fixed, it seems
	if p.limit != 1000 {
		t.Fatalf("the limit is %d; want 1000", p.limit)
	}
	p.ended(1000, 1000, 300*ms)
	p.ended(1000, 1000, 500*ms) // no more than 300ms can be fixed
	if p.limit != 500 {
		t.Errorf("the limit is %d; want 500", p.limit)
	}

	p = newPace(1000, policy.DefaultTarget)
	p.ended(1000, 1000, 600*ms)
	p.ended(500, 500, 600*ms)
	for range 40 {
		p.ended(p.limit, p.limit, time.Duration(p.limit)*400*time.Microsecond)
	}
	if p.limit < 200 || p.limit > 320 {
		t.Errorf("the limit is %d; want about 250, which takes the target", p.limit)
	}
}

func TestForetell(t *testing.T) {
	p := newPace(5000, policy.DefaultTarget)
	if d := p.foretell(1000); d != 0 {
		t.Errorf("without a batch it foretells %s", d)
	}
	p.ended(1000, 1000, 50*time.Millisecond)
	p.ended(1000, 1000, 80*time.Millisecond)
	if d := p.foretell(2000); d != 160*time.Millisecond {
		t.Errorf("it foretells %s; want the slowest of the last batches in proportion, 160ms", d)
	}
	for range 3 {
		p.ended(1000, 1000, 10*time.Millisecond)
	}
	if d := p.foretell(1000); d != 10*time.Millisecond {
		t.Errorf("it foretells %s; want 10ms: only the last three count", d)
	}
	p.ended(1, 4000, 80*time.Millisecond) // one row with its children
	if d := p.foretell(1000); d != 20*time.Millisecond {
		t.Errorf("it foretells %s; want 20ms: it was no batch of one row", d)
	}
}
