package memory

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/prunectl/prunectl/pruner"
)

// at is where the row stands in the arm's range: its age, or where its own window ends.
func (p *Pruner) at(r *row) *time.Time {
	if !p.arm.Expiry || r.Age == nil {
		return r.Age
	}
	own := p.own(r)
	if own == nil {
		return nil
	}
	t := time.Unix(r.Age.Unix()+*own, int64(r.Age.Nanosecond()))
	return &t
}

// own is the row's own window in seconds; an interval is kept as such. What is out of all bounds is cut down to a number
// that is so too.
func (p *Pruner) own(r *row) *int64 {
	if p.sweep.Own == nil {
		return nil
	}
	n, err := strconv.ParseInt(r.Columns[p.sweep.Own.Column].String(), 10, 64)
	if err != nil { // null
		return nil
	}
	const most = 1 << 32
	n = max(-most, min(n, most)) * int64(max(time.Second, p.sweep.Own.Unit)/time.Second)
	return &n
}

// raised reports whether the row's own window is usable, and below the floor.
func (p *Pruner) raised(r *row) bool {
	own := p.own(r)
	if own == nil {
		return false
	}
	w, ok := p.sweep.OwnWindow(*own)
	return ok && !w.IsNever() && *own < w.Seconds()
}

// place is the cursor: the last row examined, in the order of its age, or of the end of its own window, then ID.
type place struct {
	none bool
	at   time.Time
	id   int64
}

func (p *Pruner) placeOf(r *row) place { return place{at: *p.at(r), id: r.ID} }

func (p place) before(o place) bool {
	return p.none || cmp.Or(p.at.Compare(o.at), cmp.Compare(p.id, o.id)) < 0
}

func (p *Pruner) inOrder(a, b row) int {
	return cmp.Or(p.at(&a).Compare(*p.at(&b)), cmp.Compare(a.ID, b.ID))
}

func (p *Pruner) cursorAt(r row) pruner.Cursor { return p.placeOf(&r).cursor() }

// cursorBefore is the place right before the row: IDs are whole numbers.
func (p *Pruner) cursorBefore(r row) pruner.Cursor {
	at := p.placeOf(&r)
	at.id--
	return at.cursor()
}

func (p place) cursor() pruner.Cursor {
	return pruner.NewCursor(fmt.Sprintf("%d %d %d", p.at.Unix(), p.at.Nanosecond(), p.id))
}

func readCursor(c pruner.Cursor) (place, error) {
	if c.IsZero() {
		return place{none: true}, nil
	}
	var p place
	var sec, nsec int64
	if _, err := fmt.Sscanf(c.String(), "%d %d %d", &sec, &nsec, &p.id); err != nil {
		return place{}, fmt.Errorf("read cursor %q: %w", c, err)
	}
	p.at = time.Unix(sec, nsec)
	return p, nil
}
