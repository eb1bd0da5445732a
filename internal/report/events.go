package report

import (
	"fmt"
	"io"
	"strconv"
	"time"
)

// The commands that reopen deliveries.
const (
	Requeuing = "events requeue"
	Replaying = "events replay"
)

// Reopening is what became of a requeue or a replay.
type Reopening struct {
	Reopened []Reopened `json:"reopened"`
	Events   int        `json:"events"`   // how many events these deliveries are of
	Underway int        `json:"underway"` // deliveries of the event that a worker had claimed, and that were left to it
	Gone     []int64    `json:"gone"`     // events that were to be reopened and are not there
	Limited  bool       `json:"limited"`  // the limit was reached, so there may be more
}

// Reopened is a delivery that is owed again.
type Reopened struct {
	Event    int64  `json:"event"`
	Delivery int64  `json:"delivery"`
	Receiver string `json:"receiver"`
	Target   string `json:"target"`
}

func (r *Report) reopeningTable(w io.Writer) error {
	o := r.Reopening
	var rows [][]string
	for _, d := range o.Reopened {
		rows = append(rows, []string{strconv.FormatInt(d.Event, 10), strconv.FormatInt(d.Delivery, 10), oneLine(d.Receiver), oneLine(d.Target)})
	}
	if len(rows) > 0 {
		if err := table(w, []column{{"EVENT", true}, {"DELIVERY", true}, {"RECEIVER", false}, {"TARGET", false}}, rows); err != nil {
			return err
		}
	}
	line := "nothing was reopened"
	if len(rows) > 0 {
		line = fmt.Sprintf("%s of %s reopened", Bounded{Count: len(rows)}.words("delivery", "deliveries"), count(o.Events, "event"))
	}
	lines := []string{line}
	if o.Underway > 0 {
		lines = append(lines, Number(o.Underway)+" under way already: a worker has claimed them, and they were left to it")
	}
	for _, id := range o.Gone {
		lines = append(lines, fmt.Sprintf("event %d is gone: nothing of it was reopened", id))
	}
	if o.Limited {
		lines = append(lines, "the limit is reached and there may be more; run it again")
	}
	return writeLines(w, lines)
}

// EventHealth is how the deliveries of the component domain_events stand in one schema. What could not be read is null.
type EventHealth struct {
	Schema         string          `json:"schema"`
	Dead           *Bounded        `json:"dead"`
	Owed           *Bounded        `json:"owed"`
	OldestOwed     *time.Time      `json:"oldest_owed"` // when the event was recorded
	Lapsed         *Bounded        `json:"lapsed"`
	Parked         *Bounded        `json:"parked"`
	Unknown        []UnknownPolicy `json:"unknown_policies"`
	UnknownIsFloor bool            `json:"unknown_policies_is_floor"`
	Quiet          []QuietReceiver `json:"quiet_receivers"`
	QuietSince     *time.Time      `json:"quiet_since"` // a receiver without a success from then on is quiet
	Error          *Error          `json:"error"`       // why something was not read
}

// Bounded is a count that stopped at a bound where IsFloor says so.
type Bounded struct {
	Count   int  `json:"count"`
	IsFloor bool `json:"is_floor"`
}

// UnknownPolicy is a retention policy that no event should have.
type UnknownPolicy struct {
	Policy string `json:"policy"`
	Events int    `json:"events"`
}

// QuietReceiver is a receiver to which nothing was delivered lately.
type QuietReceiver struct {
	Receiver    string    `json:"receiver"`
	LastSuccess time.Time `json:"last_success"`
}

// words are the count of things: "1 dead letter", ">= 1,000 dead letters".
func (b Bounded) words(one, many string) string {
	text := one
	if b.Count != 1 {
		text = many
	}
	text = Number(b.Count) + " " + text
	if b.IsFloor {
		text = ">= " + text
	}
	return text
}

// lines say how the deliveries stand.
func (h EventHealth) lines(now *time.Time) []string {
	name := "domain_events in " + h.Schema + ": "
	since := func(at time.Time) string {
		text := at.UTC().Format(time.DateOnly)
		if now != nil {
			text += " (" + Ago(now.Sub(at)) + ")"
		}
		return text
	}
	var lines []string
	if h.Dead != nil && h.Owed != nil && h.Lapsed != nil && h.Parked != nil {
		oldest := ""
		if h.OldestOwed != nil {
			oldest = ", the oldest event from " + since(*h.OldestOwed)
		}
		lines = append(lines, fmt.Sprintf("%s%s; %s owed%s; %s; %s held by a dead letter", name, h.Dead.words("dead letter", "dead letters"), h.Owed.words("delivery", "deliveries"),
			oldest, h.Lapsed.words("lapsed lease", "lapsed leases"), h.Parked.words("event", "events")))
	}
	for _, u := range h.Unknown {
		n := Bounded{u.Events, h.UnknownIsFloor}
		lines = append(lines, fmt.Sprintf("%sretention_policy %q is not known: the default window holds for %s", name, oneLine(u.Policy), n.words("event", "events")))
	}
	for _, q := range h.Quiet {
		lines = append(lines, fmt.Sprintf("%sreceiver %s is quiet since %s", name, oneLine(q.Receiver), since(q.LastSuccess)))
	}
	if h.Error != nil {
		lines = append(lines, name+"not read: "+oneLine(h.Error.Message))
	}
	return lines
}
