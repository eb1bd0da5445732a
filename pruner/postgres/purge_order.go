package postgres

import (
	"fmt"
	"slices"
	"strings"
)

// arrow is a key from the table of one entry to that of another: the first has to go before the second.
type arrow struct {
	from, to int // steps
	key      reference
}

// arrows are the foreign keys between the tables of the purge.
func (i *PurgeInspection) arrows() (as []arrow) {
	for to, s := range i.steps {
		for _, k := range s.refs {
			for from, o := range i.steps {
				if o.table().oid == k.oid && !k.self {
					as = append(as, arrow{from, to, k})
				}
			}
		}
	}
	return as
}

// checkOrder refuses an order in which a row would have to go while another one refers to it, and says the right one.
func (i *PurgeInspection) checkOrder() {
	f := &i.findings
	wrong := false
	said := map[string]bool{}
	for _, a := range i.arrows() {
		from, to := i.steps[a.from].table().name, i.steps[a.to].table().name
		what := fmt.Sprintf("%s refers to %s by %s, and stands after it", from, to, a.key.name)
		if a.from < a.to || said[what] {
			continue
		}
		said[what] = true
		wrong = true
		entry := i.entryOf(a.from)
		fix := ""
		if entry == i.entryOf(a.to) {
			fix = fmt.Sprintf("put %s before %s among the children of %s, or among tables", from, to, i.Purge.Tables[entry].Table)
		} else if order, cycle := i.rightOrder(); len(cycle) > 0 {
			f.refuse("order", "tables", "", "%s refer to each other in a circle: no order lets their rows go", strings.Join(cycle, ", "))
			return
		} else {
			fix = "tables in this order: " + strings.Join(order, ", ")
		}
		f.refuse("order", i.paths[a.from], fix, "%s", what)
	}
	if !wrong {
		f.ok("order", "tables", "what refers to a table stands before it")
	}
}

// entryOf is which of the tables of the purge a step belongs to.
func (i *PurgeInspection) entryOf(step int) (entry int) {
	_, _ = fmt.Sscanf(i.paths[step], "tables.%d", &entry)
	return entry
}

// rightOrder sorts the tables of the purge so that what refers to another stands before it, and else as they are. cycle
// are those that refer to each other in a circle.
func (i *PurgeInspection) rightOrder() (order, cycle []string) {
	before := map[int][]int{} // by entry: the entries that have to be before it
	for _, a := range i.arrows() {
		if from, to := i.entryOf(a.from), i.entryOf(a.to); from != to {
			before[to] = append(before[to], from)
		}
	}
	var done []int
	open := func(e int) bool { return !slices.Contains(done, e) }
	name := func(e int) string { return i.Purge.Tables[e].Table.String() }
	for len(done) < len(i.Purge.Tables) {
		next := -1
		for e := range i.Purge.Tables {
			if open(e) && !slices.ContainsFunc(before[e], open) {
				next = e
				break
			}
		}
		if next < 0 {
			return nil, i.circle(before, open)
		}
		done, order = append(done, next), append(order, name(next))
	}
	return order, nil
}

// circle follows what has to be before from one entry to the next until it comes back.
func (i *PurgeInspection) circle(before map[int][]int, open func(int) bool) (names []string) {
	at := 0
	for !open(at) {
		at++
	}
	var way []int
	for !slices.Contains(way, at) {
		way = append(way, at)
		at = before[at][slices.IndexFunc(before[at], open)]
	}
	for _, e := range way[slices.Index(way, at):] {
		names = append(names, i.Purge.Tables[e].Table.String())
	}
	slices.Sort(names)
	return names
}
