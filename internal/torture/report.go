package torture

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is what a torture did and what it found.
type Report struct {
	Random    uint64 // the number that repeats it
	Version   string // of the server
	Reason    string // why the actors ended
	Took      time.Duration
	RowEvents int64 // rows inserted, updated and deleted

	Families []Family
	Sweepers []Sweeper
	Checks   []Check

	LockTimeouts int           // statements of users that did not get a lock in time
	Slowest      time.Duration // the longest statement of a user, whatever it waited for
	SlowestIs    string
	BehindSweep  time.Duration // the longest wait of a user behind a sweep, as seen ten times a second
	SlowestBatch time.Duration
}

// Family is what users did to the tables of a sweep, in rows, and what is left.
type Family struct {
	Name                       string
	Inserted, Updated, Deleted int64
	Left, LeftChildren         int64
	Acts                       string
}

// Sweeper is what one sweeper said, summed over its drains.
type Sweeper struct {
	Name                                     string
	Drains, Batches, Examined, Locked, Moved int
	Removed, Children                        int
	Slowest                                  time.Duration
	Stops                                    string
}

// Check is one thing that must hold. Violations is empty where it does.
type Check struct {
	What       string
	Violations []string
}

// Violations are those of all checks.
func (r *Report) Violations() (all []string) {
	for _, c := range r.Checks {
		all = append(all, c.Violations...)
	}
	return all
}

func (r *Report) check(what string, found []violation) {
	c := Check{What: what}
	for _, v := range found {
		c.Violations = append(c.Violations, strings.TrimPrefix(v.family+": "+v.what, ": "))
	}
	r.Checks = append(r.Checks, c)
}

// report is what everybody said.
func (w *world) report() *Report {
	r := &Report{
		Random: w.o.Random, Version: w.version, Reason: w.reason, Took: w.ended.Sub(w.started), RowEvents: w.events.Load(),
		LockTimeouts: w.timeouts, Slowest: w.slowest, SlowestIs: w.slowestIs, BehindSweep: w.behind,
	}
	for _, f := range w.families {
		acts := map[string]int{}
		for _, u := range f.users {
			for name, n := range u.done {
				acts[name] += n
			}
		}
		r.Families = append(r.Families, Family{
			Name: f.name, Inserted: f.inserted.Load(), Updated: f.updated.Load(), Deleted: f.deleted.Load(), Acts: counts(acts),
		})
		for _, s := range f.sweepers {
			r.Sweepers = append(r.Sweepers, Sweeper{
				Name: s.name(), Drains: s.drains, Batches: s.batches, Examined: s.examined, Locked: s.locked, Moved: s.moved,
				Removed: s.removed, Children: s.children, Slowest: s.slowest, Stops: counts(s.stops),
			})
			r.SlowestBatch = max(r.SlowestBatch, s.slowest)
		}
	}
	return r
}

// counts writes how often each word was, the words in their order.
func counts(of map[string]int) string {
	var words []string
	for word, n := range of {
		words = append(words, fmt.Sprintf("%s %d", word, n))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// Write writes the report for a person.
func (r *Report) Write(to io.Writer) error {
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "random number %d, PostgreSQL %s: %d row events in %s, %.0f a second; ended: %s\n\n",
		r.Random, r.Version, r.RowEvents, r.Took.Round(time.Second), float64(r.RowEvents)/max(1, r.Took.Seconds()), r.Reason)
	fmt.Fprintln(t, "FAMILY\tINSERTED\tUPDATED\tDELETED\tLEFT\tCHILDREN LEFT\tDONE BY USERS")
	for _, f := range r.Families {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%s\n", f.Name, f.Inserted, f.Updated, f.Deleted, f.Left, f.LeftChildren, f.Acts)
	}
	fmt.Fprintln(t, "\nSWEEPER\tDRAINS\tBATCHES\tEXAMINED\tREMOVED\tCHILDREN\tLOCKED\tMOVED\tSLOWEST\tSTOPS")
	for _, s := range r.Sweepers {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", s.Name, s.Drains, s.Batches, s.Examined, s.Removed, s.Children, s.Locked, s.Moved, s.Slowest.Round(time.Millisecond), s.Stops)
	}
	fmt.Fprintf(t, "\nlongest wait of a user for one lock of a sweep, as seen: %s; slowest batch: %s; longest statement of a user: %s (%s); lock timeouts of users: %d\n\n",
		r.BehindSweep.Round(time.Millisecond), r.SlowestBatch.Round(time.Millisecond), r.Slowest.Round(time.Millisecond), r.SlowestIs, r.LockTimeouts)
	fmt.Fprintln(t, "CHECK\tRESULT")
	for _, c := range r.Checks {
		result := "ok"
		if len(c.Violations) > 0 {
			result = fmt.Sprintf("%d violations", len(c.Violations))
		}
		fmt.Fprintf(t, "%s\t%s\n", c.What, result)
	}
	for _, v := range r.Violations() {
		fmt.Fprintf(t, "\nviolation: %s", v)
	}
	if n := len(r.Violations()); n > 0 {
		fmt.Fprintf(t, "\n\n%d violations; the random number is %d\n", n, r.Random)
	}
	return t.Flush()
}
