package postgres

import (
	"slices"
	"strconv"
	"strings"

	"github.com/prunectl/prunectl/pruner"
)

// The parent form of a batch is for rows that are kept by rows of other tables, or take them along. One statement has one
// snapshot, so it is several steps of one transaction: [renderer.parents] looks, locks the parents that are due and takes
// those that have room; [target.recheckSQL] asks on a snapshot of its own, under the lock, which of them are owed by now;
// [target.childSQL] or [target.chunkSQL] empty the tables of children; [target.parentSQL] removes the parents that have none
// left. Addresses go from step to step in settings of the transaction: the parents are locked, so none of them moves.

// The parameters of the steps, beside those of every batch.
const (
	argLook  = "look"  // int: parents looked at
	argWhole = "whole" // int: rows, parent and children, that may go in one batch although its limit is lower
	argChunk = "chunk" // tid: the parent that is emptied
	argLast  = "last"  // last0, last1, ..: the last key of its children so far
)

// The settings of the transaction by which the steps tell each other what to do.
const (
	setPicked = "prunectl.picked" // tid[]: parents to remove
	setPassed = "prunectl.passed" // tid[]: parents looked at that have the age with which the next batch begins
	setEmpty  = "prunectl.empty"  // "yes": a chunk found the last of the children
)

// tids reads a list of addresses back.
func tids(setting string) string { return "current_setting('" + setting + "')::tid[]" }

// parents renders the first step.
func (r *renderer) parents() {
	r.seenParents()
	if r.arm.Owner != nil {
		r.owners()
	}
	r.judged()
	if r.deletes() {
		r.lockedParents()
	}
	r.fit()
	r.parentsResult()
}

// keyed reports whether an index orders parents of one age, so that a place among them is a key and not a list.
func (t *target) keyed() bool { return len(t.ties.columns) > 0 }

// ours is a column of the first step's own, beside those of the target that it carries along: by none of their names.
func (r *renderer) ours(name string) string {
	for slices.Contains(r.parentColumns(), name) {
		name += "_"
	}
	return name
}

// most is how many parents are looked at.
func (r *renderer) most() string {
	if r.chunk {
		return "1"
	}
	return r.arg(argLook, "int")
}

// seenParents takes the next parents in the order of their ages, and one more than are looked at: where the next batch
// begins.
func (r *renderer) seenParents() {
	at := r.at("e")
	cols := []string{"e.ctid AS " + r.ours("tid"), at + " AS " + r.ours("at")}
	for _, c := range r.parentColumns() {
		cols = append(cols, "e."+ident(c))
	}
	if r.chunk {
		r.cte("seen", "the parent that is emptied")
		r.line("  SELECT e.*, %s", r.owedColumn())
		r.line("    FROM (SELECT %s, 1 AS %s FROM ONLY %s e", strings.Join(cols, ", "), r.ours("n"), tableName(r.table.name))
		r.line("           WHERE e.ctid = %s", r.arg(argChunk, "tid"))
		r.line("             AND (%s < %s  -- cutoff", at, r.arg(argCutoff, "timestamptz"))
		r.line("             AND %s >= %s  -- cursor", at, r.arg(argAfter, "timestamptz"))
		r.equalities("e")
		r.gated()
		r.line("                 ) IS TRUE) e")
	} else {
		order := []string{at}
		if r.keyed() {
			for _, c := range r.ties.columns {
				order = append(order, "e."+ident(c.name))
			}
		}
		by := strings.Join(order, ", ")
		r.cte("seen", "the next parents, the oldest first, and one more: where the next batch begins")
		r.line("  SELECT e.*, %s", r.owedColumn())
		r.line("    FROM (SELECT %s, row_number() OVER (ORDER BY %s) AS %s FROM ONLY %s e", strings.Join(cols, ", "), by, r.ours("n"), tableName(r.table.name))
		r.line("           WHERE %s < %s  -- cutoff", at, r.arg(argCutoff, "timestamptz"))
		r.afterParents(at)
		r.equalities("e")
		r.gated()
		r.line("           ORDER BY %s LIMIT %s + 1) e", by, r.most())
	}
	r.owedJoin()
}

// afterParents is the cursor: an age, and a place among the parents of that age.
func (r *renderer) afterParents(at string) {
	after := r.arg(argAfter, "timestamptz")
	switch {
	case r.keyed() && r.next:
		have, last := []string{at}, []string{after}
		for i, c := range r.ties.columns {
			have = append(have, "e."+ident(c.name))
			last = append(last, r.arg(argTie+strconv.Itoa(i), "text")+"::"+c.typ)
		}
		r.line("             AND (%s) > (%s)  -- cursor", strings.Join(have, ", "), strings.Join(last, ", "))
	case r.keyed():
		r.line("             AND %s >= %s  -- cursor", at, after)
	default:
		r.line("             AND %s >= %s  -- cursor", at, after)
		r.line("             AND NOT (e.ctid = ANY (%s))  -- no index orders those of one age: they are passed over by address", r.arg(argPassed, "tid[]"))
	}
}

// parentColumns are the columns that any step reads from a parent.
func (r *renderer) parentColumns() []string {
	cols := r.rowColumns()
	add := func(c string) {
		for _, have := range cols {
			if have == c {
				return
			}
		}
		cols = append(cols, c)
	}
	add(r.sweep.Age)
	for _, c := range r.children {
		if c.parent == nil {
			for _, k := range c.key {
				add(k.Parent)
			}
		}
	}
	if r.owed != nil {
		for _, k := range r.owed.key {
			add(k.Parent)
		}
	}
	for _, c := range r.ties.columns {
		add(c.name)
	}
	return cols
}

func (r *renderer) owedColumn() string {
	if r.owed == nil {
		return "NULL::boolean AS " + r.ours("owed")
	}
	return "w.owed AS " + r.ours("owed")
}

// owes is the probe with a column.
func (r *renderer) owes(alias string) string {
	return strings.Replace(r.owedProbe(alias), "SELECT FROM", "SELECT true AS owed FROM", 1)
}

// owedJoin probes what refers to a parent, by its key: once, and not at all for a parent that is kept anyway.
func (r *renderer) owedJoin() {
	if r.owed == nil {
		return
	}
	// Inside of the probe the condition keeps it from being made; as one of the join it would be asked afterwards.
	r.line("    LEFT JOIN LATERAL (%s", r.owes("e"))
	r.line("                          AND %s LIMIT 1) w ON true", and("e."+r.ours("n")+" <= "+r.most(), r.classes("e").candidate))
}

// judged says of each parent what it is on the snapshot.
func (r *renderer) judged() {
	c := r.classes("e")
	r.cte("judged", "each parent is in one class")
	r.line("  SELECT e.*, %s AS %s", c.raised, r.ours("raised"))
	r.line("       , CASE WHEN %s THEN 'outside'", c.outside)
	r.line("              WHEN %s THEN 'unusable'", c.unusable)
	r.line("              WHEN %s THEN 'held'", c.held)
	r.line("              WHEN NOT (%s) THEN 'kept'  -- by a longer window, or it is another arm's", c.candidate)
	if r.owed != nil {
		r.line("              WHEN e.%s THEN 'owed'", r.ours("owed"))
	}
	if r.arm.Owner == nil {
		r.line("              ELSE 'due' END AS %s", r.ours("class"))
		r.line("    FROM seen e")
	} else {
		var on []string
		for i, k := range r.arm.Owner.Key {
			on = append(on, "o.k"+strconv.Itoa(i)+" = e."+ident(k.Target))
		}
		r.line("              WHEN o.got THEN 'due'")
		r.line("              WHEN o.ok IS NULL THEN 'orphan'")
		r.line("              WHEN NOT o.ok THEN 'held'")
		r.line("              ELSE 'locked' END AS %s  -- its owner is terminal, but somebody holds it", r.ours("class"))
		r.line("    FROM seen e LEFT JOIN owners o ON %s", strings.Join(on, " AND "))
	}
	r.line("   WHERE e.%s <= %s", r.ours("n"), r.most())
}

// lockedParents locks what is due: FOR UPDATE, so that the key of a new child, which shares the lock of its parent, has to
// wait or is waited for elsewhere. A parent that somebody holds is left.
func (r *renderer) lockedParents() {
	r.cte("mine", "locked against a reopening and against new children, and as they are now")
	r.line("  SELECT d.ctid AS tid FROM ONLY %s d", tableName(r.table.name))
	r.line("   WHERE d.ctid = ANY (ARRAY(SELECT j.%s FROM judged j WHERE j.%s = 'due'))", r.ours("tid"), r.ours("class"))
	r.againParent()
	r.line("     FOR UPDATE SKIP LOCKED")
}

// againParent repeats what can have changed since the snapshot. IS TRUE keeps it a filter.
func (r *renderer) againParent() {
	at := r.at("d")
	r.line("     AND (%s < %s  -- age, again", at, r.arg(argCutoff, "timestamptz"))
	r.line("     AND %s >= %s", at, r.arg(argAfter, "timestamptz"))
	r.equalities("d")
	if c := r.classes("d").candidate; c != "true" {
		r.line("     AND %s  -- state, again", c)
	}
	r.line("         ) IS TRUE")
}

// fit adds up rows and children in order, and finds the first parent that is left for want of room. The first that is due
// goes whole where its children fit in a batch of the policy; one with more is emptied in chunks.
func (r *renderer) fit() {
	n, tid, got, kids, over := r.ours("n"), r.ours("tid"), r.ours("got"), r.ours("kids"), r.ours("over")
	r.cte("counted", "children of what is locked, counted up to what may go whole")
	if r.deletes() && !r.chunk {
		var each []string
		for _, c := range r.children {
			each = append(each, "(SELECT count(*) FROM (SELECT "+c.under("j", "", "", "", "")+" LIMIT "+r.arg(argWhole, "int")+") x)")
		}
		if len(each) == 0 {
			each = append(each, "0")
		}
		r.line("  SELECT j.%s AS n, %s AS kids", n, strings.Join(each, " + "))
		r.line("    FROM mine m JOIN judged j ON j.%s = m.tid", tid)
	} else {
		r.line("  SELECT j.%s AS n, 0::bigint AS kids", n)
		if r.deletes() {
			r.line("    FROM mine m JOIN judged j ON j.%s = m.tid", tid)
		} else {
			r.line("    FROM judged j WHERE j.%s = 'due'  -- stepped over: nothing is locked", r.ours("class"))
		}
	}
	r.cte("fit", "what has room")
	r.line("  SELECT j.*, c.n IS NOT NULL AS %s, c.kids AS %s", got, kids)
	r.line("       , sum(1 + coalesce(c.kids, 0)) OVER (ORDER BY j.%s) > %s", n, r.room())
	r.line("         AND NOT coalesce(c.n = (SELECT min(o.n) FROM counted o) AND 1 + c.kids <= %s, false) AS %s", r.arg(argWhole, "int"), over)
	r.line("    FROM judged j LEFT JOIN counted c ON c.n = j.%s", n)
	r.cte("cut", "the first row that is left")
	r.line("  SELECT coalesce(min(f.%s), (SELECT count(*) FROM judged) + 1) AS n FROM fit f WHERE f.%s", n, over)
	r.cte("done", "what this batch examines")
	r.line("  SELECT f.* FROM fit f, cut WHERE f.%s < cut.n", n)
}

// room is how many rows, children counted, the batch may remove.
func (r *renderer) room() string { return r.arg(argLimit, "int") }

// parentsResult answers with counts, and leaves the addresses for the next steps.
func (r *renderer) parentsResult() {
	n, tid, at, cls, got := r.ours("n"), r.ours("tid"), r.ours("at"), r.ours("class"), r.ours("got")
	class := func(name string) string { return "count(*) FILTER (WHERE d." + cls + " = '" + name + "')" }
	r.b.WriteString(")\n")
	r.line("SELECT count(*) AS examined, %s AS outside, %s AS unusable, %s AS held, %s AS owed", class("outside"), class("unusable"), class("held"), class("owed"))
	r.line("     , %s AS orphan, count(*) FILTER (WHERE d.%s = 'locked' OR d.%[2]s = 'due' AND NOT d.%s) AS locked", class("orphan"), cls, got)
	r.line("     , count(*) FILTER (WHERE d.%s) AS raised, count(*) FILTER (WHERE d.%s) AS picked", r.ours("raised"), got)
	if r.gate {
		r.line("     , (SELECT g.ok FROM gate g) AS ok")
	} else {
		r.line("     , true AS ok")
	}
	r.line("     , set_config('%s', coalesce(array_agg(d.%s) FILTER (WHERE d.%s), '{}')::text, true)", setPicked, tid, got)
	// The first row that is left, also the one more that was taken: the next batch begins with its age.
	r.line("     , (SELECT (extract(epoch FROM s.%s) * 1000000)::bigint FROM seen s, cut WHERE s.%s = cut.n) AS next  -- microseconds", at, n)
	r.line("     , (SELECT f.%s::text FROM fit f, cut WHERE f.%s = cut.n AND f.%s AND f.%s AND 1 + f.%s > %s) AS wide  -- has more children than may go whole",
		tid, n, got, r.ours("over"), r.ours("kids"), r.arg(argWhole, "int"))
	r.line("     , (SELECT (extract(epoch FROM max(l.%s)) * 1000000)::bigint FROM done l) AS at", at)
	if r.keyed() {
		var texts []string
		for _, c := range r.ties.columns {
			texts = append(texts, "l."+ident(c.name)+"::text")
		}
		r.line("     , (SELECT to_json(ARRAY[%s])::text FROM done l ORDER BY l.%s DESC LIMIT 1) AS last", strings.Join(texts, ", "), n)
		r.line("     , set_config('%s', '{}', true)", setPassed)
	} else {
		r.line("     , NULL::text AS last")
		r.line("     , set_config('%s', coalesce((SELECT array_agg(l.%s) FROM done l, seen s, cut WHERE s.%s = cut.n AND l.%s = s.%[4]s), '{}')::text, true)", setPassed, tid, n, at)
	}
	r.line("  FROM done d")
}

// nearKeys are the planner's settings for the steps that go by keys: nested loops, since any other join would read a whole
// table of children.
const nearKeysSQL = `SELECT set_config('enable_nestloop', 'on', true), set_config('enable_hashjoin', 'off', true), set_config('` + setEmpty + `', 'yes', true)`

// pickedParents is the FROM and WHERE of the parents that go, as alias p.
func (r *renderer) pickedParents() string {
	return "FROM ONLY " + tableName(r.table.name) + " p WHERE p.ctid = ANY (" + tids(setPicked) + ")"
}

// recheckSQL asks again, on a snapshot that is younger than the locks, which of the picked parents are owed: a child that
// was reopened, or added, before the lock was there is seen now, and none can come after it from whoever takes the lock of
// the parent first.
func (t *target) recheckSQL() statement {
	r := &renderer{target: t}
	r.line("SELECT count(*), set_config('%s', coalesce(array_agg(p.ctid), '{}')::text, true)", setPicked)
	r.line("  %s", r.pickedParents())
	if r.owed != nil {
		r.line("   AND (%s LIMIT 1) IS NULL  -- not owed, a probe each", r.owes("p"))
	}
	return statement{r.b.String(), r.args}
}

// childSQL removes the rows of one table under the picked parents, by address. A row that is owed stays: one that is
// reopened while the batch waits for it, by somebody who took no lock of the parent, is judged by what it has become.
func (t *target) childSQL(c *child) statement {
	r := &renderer{target: t}
	r.line("DELETE FROM ONLY %s d", tableName(c.table.name))
	where := ""
	if st := r.childState(c, "c"); st != "" {
		where = " AND " + st
	}
	r.line(" WHERE d.ctid = ANY (ARRAY(SELECT c.ctid")
	r.line("          FROM ONLY %s p CROSS JOIN LATERAL (SELECT c.ctid %s) c", tableName(r.table.name), c.under("p", "c.ctid", where, "", ""))
	r.line("         WHERE p.ctid = ANY (%s)))  -- by address: a Tid Scan under every plan", tids(setPicked))
	r.childAgain(c)
	return statement{r.b.String(), r.args}
}

// under is the FROM of a table's rows, as alias c, under a row of an alias of the target: one probe of a key after the other.
// OFFSET 0 keeps them probes, since as joins they could read a table as a whole. The rows of the table next to the target
// have the alias c1 where it is another; topWhere and topOrder are its, cols and where those of the table itself.
func (c *child) under(up, cols, where, topWhere, topOrder string) string {
	var tables []*child
	for x := c; x != nil; x = x.parent {
		tables = append([]*child{x}, tables...)
	}
	var b strings.Builder
	b.WriteString("FROM")
	for n, x := range tables {
		alias, more := "c"+strconv.Itoa(n+1), ""
		if n > 0 {
			b.WriteString(" CROSS JOIN LATERAL")
		} else {
			more = topWhere
		}
		list, order := "", " OFFSET 0"
		if n == 0 {
			order = topOrder + order
		}
		if x == c {
			list, more = cols, more+where
			alias = "c"
		} else {
			list = strings.Join(x.columnsFor(tables[n+1], n == 0 && topOrder != "", alias), ", ")
		}
		b.WriteString(" (SELECT " + list + " FROM ONLY " + tableName(x.table.name) + " " + alias + " WHERE " + x.refersTo(up, alias) + more + order + ") " + alias)
		up = alias
	}
	return b.String()
}

// columnsFor are the columns by which the rows of a table below refer to this one, and with the keyset the order of a walk.
func (c *child) columnsFor(below *child, keyset bool, alias string) []string {
	var cols []string
	add := func(name string) {
		if name = alias + "." + ident(name); !slices.Contains(cols, name) {
			cols = append(cols, name)
		}
	}
	if below != nil {
		for _, k := range below.key {
			add(k.Parent)
		}
	}
	if keyset {
		for _, k := range c.keyset {
			add(k.name)
		}
	}
	return cols
}

// childState lets the rows of a table go that is also what is owed.
func (r *renderer) childState(c *child, alias string) string {
	if c.state == nil || c.state.Column == "" {
		return ""
	}
	col, _ := c.table.column(c.state.Column)
	return in(alias+"."+ident(c.state.Column), c.state.Terminal, col)
}

// childAgain repeats on the row to be removed what can have changed, and leaves a row that still has children of its own.
func (r *renderer) childAgain(c *child) {
	var again []string
	if s := r.childState(c, "d"); s != "" {
		again = append(again, s)
	}
	for _, x := range r.children {
		if x.parent == c {
			again = append(again, "(SELECT true "+x.below("d")+" LIMIT 1) IS NULL")
		}
	}
	if len(again) > 0 {
		r.line("   AND (%s) IS TRUE  -- state, again", strings.Join(again, " AND "))
	}
}

// below is the FROM and WHERE of the table's rows under a row of an alias.
func (c *child) below(up string) string {
	return "FROM ONLY " + tableName(c.table.name) + " c WHERE " + c.refersTo(up, "c")
}

// chunkSQL removes the next rows of one table under the parent that is emptied. Where an index orders them they are taken
// in its order from the last key on, so that no chunk walks the dead entries of those before it.
func (t *target) chunkSQL(c *child, next bool) statement {
	r := &renderer{target: t}
	top := c
	for top.parent != nil {
		top = top.parent
	}
	alias := "c"
	if top != c {
		alias = "c1"
	}
	var have, order, last []string
	for i, k := range top.keyset {
		have = append(have, alias+"."+ident(k.name))
		order = append(order, "n.k"+strconv.Itoa(i)+" DESC")
		if next {
			last = append(last, r.arg(argLast+strconv.Itoa(i), "text")+"::"+k.typ)
		}
	}
	where, topWhere, topOrder := "", "", ""
	if st := r.childState(c, "c"); st != "" {
		where = " AND " + st
	}
	if len(last) > 0 {
		op := ">"
		if top != c {
			op = ">=" // rows of a table further down can be left under the last key
		}
		topWhere = " AND (" + strings.Join(have, ", ") + ") " + op + " (" + strings.Join(last, ", ") + ")"
	}
	if len(have) > 0 {
		topOrder = " ORDER BY " + strings.Join(have, ", ")
	}
	cols, all := "c.ctid AS tid", "c.tid"
	for i, h := range have {
		k := "k" + strconv.Itoa(i)
		cols, all = cols+", "+h+" AS "+k, all+", c."+k
	}
	r.cte("next", "the next children")
	r.line("  SELECT %s FROM ONLY %s p CROSS JOIN LATERAL (SELECT %s", all, tableName(r.table.name), cols)
	inner := []string{"c.ctid"}
	if top == c {
		inner = append(inner, c.columnsFor(nil, true, "c")...)
	}
	r.line("      %s) c", c.under("p", strings.Join(inner, ", "), where, topWhere, topOrder))
	r.line("   WHERE p.ctid = ANY (%s)", tids(setPicked))
	r.line("   LIMIT %s", r.arg(argLimit, "int"))
	r.cte("gone", "by address")
	r.line("  DELETE FROM ONLY %s d", tableName(c.table.name))
	r.line("   WHERE d.ctid = ANY (ARRAY(SELECT n.tid FROM next n))")
	r.childAgain(c)
	r.line("  RETURNING d.ctid")
	r.b.WriteString(")\n")
	r.line("SELECT (SELECT count(*) FROM gone) AS removed, (SELECT count(*) FROM next) AS seen")
	if len(have) > 0 {
		var texts []string
		for i := range have {
			texts = append(texts, "n.k"+strconv.Itoa(i)+"::text")
		}
		r.line("     , (SELECT to_json(ARRAY[%s])::text FROM next n ORDER BY %s LIMIT 1) AS last", strings.Join(texts, ", "), strings.Join(order, ", "))
	} else {
		r.line("     , NULL::text AS last")
	}
	if t.lastTable(c) {
		r.line("     , set_config('%s', CASE WHEN (SELECT count(*) FROM next) < %s THEN 'yes' ELSE 'no' END, true)", setEmpty, r.arg(argLimit, "int"))
	} else {
		r.line("     , set_config('%s', 'no', true)", setEmpty)
	}
	return statement{r.b.String(), r.args}
}

func (t *target) lastTable(c *child) bool { return t.children[len(t.children)-1] == c }

// parentSQL removes the picked parents that nothing refers to any more.
func (t *target) parentSQL() statement {
	r := &renderer{target: t}
	r.line("DELETE FROM ONLY %s d", tableName(t.table.name))
	r.line(" WHERE current_setting('%s') = 'yes'", setEmpty)
	r.line("   AND d.ctid = ANY (%s)  -- locked by this transaction, so still what was picked", tids(setPicked))
	kids := false
	for _, c := range t.children {
		if c.parent == nil {
			r.line("   AND (SELECT true %s LIMIT 1) IS NULL  -- no child is left", c.below("d"))
			kids = kids || c.state != nil
		}
	}
	if t.owed != nil && !kids {
		r.line("   AND (%s LIMIT 1) IS NULL  -- nothing is owed", r.owes("d"))
	}
	return statement{r.b.String(), r.args}
}

// afterParentsSQL looks again at the parents that were picked and are still there, which of them are owed and which of the
// others have children, and says the transaction's id.
func (t *target) afterParentsSQL() statement {
	r := &renderer{target: t}
	owed := "NULL::boolean"
	if t.owed != nil {
		owed = "(" + r.owes("p") + " LIMIT 1)"
	}
	kids := "false"
	for _, c := range t.children {
		if c.parent == nil {
			kids = or(kids, "(SELECT true "+c.below("p")+" LIMIT 1) IS NOT NULL")
		}
	}
	if kids != "false" {
		// Between two chunks there are some, and to find one would be to walk the dead entries of all that are gone.
		kids = "CASE WHEN current_setting('" + setEmpty + "') = 'yes' THEN " + kids + " ELSE true END"
	}
	r.line("SELECT count(*) AS left, count(*) FILTER (WHERE x.owed) AS owed")
	r.line("     , %s AS xid", transactionSQL)
	r.line("     , (SELECT coalesce(array_agg(d.ctid)::text, '{}') FROM ONLY %s d WHERE d.ctid = ANY (%s)) AS passed", tableName(t.table.name), tids(setPassed))
	r.line("     , count(*) FILTER (WHERE x.owed IS NULL AND x.kids) AS kids")
	r.line("  FROM (SELECT %s AS owed, %s AS kids", owed, kids)
	r.line("          %s OFFSET 0) x  -- each probe once", r.pickedParents())
	return statement{r.b.String(), r.args}
}

// steps reports whether the mode removes nothing.
func steps(m pruner.Mode) bool { return m == pruner.StepStuck || m == pruner.StepLocked }
