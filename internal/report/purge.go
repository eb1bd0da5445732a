package report

import "time"

// Purging is the command that removes everything of one tenant.
const Purging = "purge"

// The reasons for which a purge ended, beside Busy, Ceiling, Refused, Failed, Signal and, for a dry run, Counted.
const (
	Purged   Stop = "purged"   // the last look found nothing of the tenant
	Left     Stop = "left"     // the last look found rows
	Declined Stop = "declined" // what was typed is not the tenant's name; nothing was touched
)

// PurgeStops lists every reason for which a purge ends.
func PurgeStops() []Stop {
	return []Stop{Purged, Left, Busy, Ceiling, Refused, Declined, Failed, Signal, Counted}
}

// Purge is what became of the removal of one tenant: the receipt.
type Purge struct {
	Name     string          `json:"name"`
	Tenant   string          `json:"tenant"`
	Key      string          `json:"key,omitempty"` // the column of the tables that name no other
	Tables   []PurgeTable    `json:"tables"`        // in the order in which their rows go
	Excluded []PurgeExcluded `json:"excluded"`
	Checks   []Check         `json:"checks"`
	Passes   int             `json:"passes"`
	Stop     Stop            `json:"stop"`
	Proved   bool            `json:"proved"`    // the last look found nothing in any of the tables
	ProvedAt *time.Time      `json:"proved_at"` // when its snapshot was taken, by the server's clock; null where it is not proved
	LookedAt *time.Time      `json:"looked_at"` // the same of the last look, whatever it found; null where there was none
	Writers  []PurgeWriter   `json:"writers"`   // with a transaction open at the last look: what they commit is not in it
	Started  *time.Time      `json:"started_at"`
	Ended    *time.Time      `json:"ended_at"`
	Operator string          `json:"operator"` // the user of the operating system, "" where that is not known
	Error    *Error          `json:"error"`
}

// PurgeTable is what became of one table.
type PurgeTable struct {
	Table string   `json:"table"`
	By    *string  `json:"by"` // the column that says whose a row is; null for a child
	Of    []string `json:"of"` // for a child: the tables by which its rows are the tenant's, the nearest first

	Found        *int `json:"found"` // before anything went; null where nobody looked
	FoundIsFloor bool `json:"found_is_floor"`
	Removed      int  `json:"removed"`
	Late         int  `json:"late"` // found by the look after the first pass
	Left         *int `json:"left"` // by the last look; null where there was none
	LeftIsFloor  bool `json:"left_is_floor"`

	Locked         int     `json:"locked"` // in the last pass
	Stuck          int     `json:"stuck"`
	StuckOn        []Block `json:"stuck_on"`
	Batches        int     `json:"batches"`
	SlowestBatch   float64 `json:"slowest_batch_seconds"`
	UnknownCommits int     `json:"unknown_commits"`
	Error          *Error  `json:"error"`
}

// PurgeExcluded is a table that keeps its rows, and the reason that the policy file gives.
type PurgeExcluded struct {
	Table  string `json:"table"`
	Reason string `json:"reason"`
}

// PurgeWriter is a session with an open transaction that has written to a table.
type PurgeWriter struct {
	PID   int    `json:"pid"` // 0 where it is no session, and App says what it is
	App   string `json:"app"`
	Table string `json:"table"`
}

// NewPurge is an empty entry of a purge; no list in it is nil, so that none is null in JSON.
func NewPurge(name, tenant string) *Purge {
	return &Purge{Name: name, Tenant: tenant, Tables: []PurgeTable{}, Excluded: []PurgeExcluded{}, Checks: []Check{}, Writers: []PurgeWriter{}}
}

// NewPurgeTable is an empty entry of a table; a child has no column and names the tables that it is of.
func NewPurgeTable(table, column string, of []string) PurgeTable {
	t := PurgeTable{Table: table, Of: of, StuckOn: []Block{}}
	if column != "" {
		t.By = &column
	}
	if of == nil {
		t.Of = []string{}
	}
	return t
}

// counts are the purge's part of the totals.
func (p *Purge) counts() Counts {
	var c Counts
	for _, t := range p.Tables {
		c.Add(Counts{Removed: t.Removed, Locked: t.Locked, Stuck: t.Stuck})
	}
	return c
}

// amount sums a count of every table; floor where one of them is.
func (p *Purge) amount(of func(PurgeTable) (*int, bool)) (n int, floor bool) {
	for _, t := range p.Tables {
		if count, more := of(t); count != nil {
			n, floor = n+*count, floor || more
		}
	}
	return n, floor
}

func (p *Purge) found() (int, bool) {
	return p.amount(func(t PurgeTable) (*int, bool) { return t.Found, t.FoundIsFloor })
}

func (p *Purge) left() (int, bool) {
	return p.amount(func(t PurgeTable) (*int, bool) { return t.Left, t.LeftIsFloor })
}

func (p *Purge) removed() int {
	n, _ := p.amount(func(t PurgeTable) (*int, bool) { return &t.Removed, false })
	return n
}

// Outcome says in a few words why the exit code is not 0.
func (p *Purge) Outcome() string {
	switch p.Stop {
	case Refused, Declined, Busy, Failed:
		return "purge " + p.Name + " " + string(p.Stop)
	case Left:
		return "purge " + p.Name + " left rows"
	}
	return "purge " + p.Name + " is not complete"
}
