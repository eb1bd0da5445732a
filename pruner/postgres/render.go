package postgres

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/prunectl/prunectl/pruner"
)

// shape says which statement of an arm is wanted.
type shape struct {
	mode  pruner.Mode
	group bool // rows of one age, more of them than the limit
	next  bool // among rows of one age that are walked by their key: a batch after the first
	look  bool // counts only: no lock, no delete
	chunk bool // a parent that is emptied
}

// statement is a rendered statement and what its parameters stand for, in order.
type statement struct {
	sql  string
	args []string
}

// The parameters of the statements, by what they stand for.
const (
	argCutoff = "cutoff" // timestamptz, exclusive
	argAfter  = "after"  // timestamptz, inclusive: the cursor, or the age of the group
	argLimit  = "limit"  // int
	argPassed = "passed" // tid[]: rows of the group that stay
	argTie    = "tie"    // tie0, tie1, ..: the last key of the group so far
)

// renderer writes one statement, a clause a line with the reason beside it.
type renderer struct {
	*target
	shape
	b    strings.Builder
	args []string
	ctes int
}

func (t *target) render(s shape) statement {
	r := &renderer{target: t, shape: s}
	r.statement()
	return statement{r.b.String(), r.args}
}

// arg is the placeholder of a parameter, always cast: an untyped one would be guessed.
func (r *renderer) arg(name, typ string) string {
	for i, a := range r.args {
		if a == name {
			return "$" + strconv.Itoa(i+1) + "::" + typ
		}
	}
	r.args = append(r.args, name)
	return "$" + strconv.Itoa(len(r.args)) + "::" + typ
}

func (r *renderer) line(format string, args ...any) { fmt.Fprintf(&r.b, format+"\n", args...) }

// cte begins a WITH query; all are MATERIALIZED, so that each is read once and none is folded into the delete.
func (r *renderer) cte(name, why string) {
	if r.ctes == 0 {
		r.b.WriteString("WITH ")
	} else {
		r.b.WriteString("), ")
	}
	r.ctes++
	materialized := " MATERIALIZED"
	if name == "gone" {
		materialized = ""
	}
	r.line("%s AS%s (  -- %s", name, materialized, why)
}

func (r *renderer) deletes() bool { return r.mode == pruner.Remove || r.mode == pruner.SkipLocked }

func (r *renderer) statement() {
	if r.gate {
		r.cte("gate", "one sweeper at a time; the loser reads nothing")
		r.line("  SELECT pg_try_advisory_xact_lock(%d) AS ok", r.lockKey())
	}
	if r.arm.Parents() {
		r.parents()
		return
	}
	if r.group {
		r.seen()
	} else {
		r.edge()
	}
	if r.arm.Owner != nil {
		r.owners()
	}
	r.tally()
	r.picked()
	if r.mode == pruner.SkipLocked {
		r.mine()
	}
	if r.deletes() {
		r.gone()
	}
	r.result()
}

// edge finds the exclusive end of the batch, and with it the next cursor: never over the limit, no row examined twice in
// a pass, rows of one age never straddle two batches.
func (r *renderer) edge() {
	at := r.at("e")
	r.cte("edge", "the age of the first row after the batch: its exclusive end, and the next cursor")
	r.line("  SELECT %s AS at FROM ONLY %s e", at, tableName(r.table.name))
	r.line("   WHERE %s < %s  -- cutoff", at, r.arg(argCutoff, "timestamptz"))
	r.line("     AND %s >= %s  -- cursor", at, r.arg(argAfter, "timestamptz"))
	r.equalities("e")
	r.gated()
	r.line("   ORDER BY %s OFFSET %s LIMIT 1  -- oldest first", at, r.arg(argLimit, "int"))
}

// seen takes the next rows of a group: those of one age, in the order of the serving index's further columns.
func (r *renderer) seen() {
	row := r.at("e")
	r.cte("seen", "the next rows of one age")
	cols := []string{"e.ctid AS " + r.ours("tid"), "e." + ident(r.sweep.Age)}
	for _, c := range r.rowColumns() {
		cols = append(cols, "e."+ident(c))
	}
	r.line("  SELECT %s FROM ONLY %s e", strings.Join(cols, ", "), tableName(r.table.name))
	at := r.arg(argAfter, "timestamptz")
	if len(r.ties.columns) == 0 {
		r.line("   WHERE %s = %s  -- the group", row, at)
		r.equalities("e")
		r.gated()
		r.line("     AND NOT (e.ctid = ANY (%s))  -- no index orders them: those that stayed are passed over by address", r.arg(argPassed, "tid[]"))
	} else {
		// Two bounds and no equality: it would leave the key alone to order by, and the planner free to walk another index
		// on that, past rows of every other age.
		after, until, dir := ">", "<=", ""
		if r.ties.desc {
			after, until, dir = "<", ">=", " DESC"
		}
		have, last, order := []string{row}, []string{at}, []string{row + dir}
		for i, c := range r.ties.columns {
			have = append(have, "e."+ident(c.name))
			order = append(order, "e."+ident(c.name)+dir)
			if r.next {
				last = append(last, r.arg(argTie+strconv.Itoa(i), "text")+"::"+c.typ)
			}
		}
		if r.next {
			r.line("   WHERE (%s) %s (%s)  -- the group, after the batch before", strings.Join(have, ", "), after, strings.Join(last, ", "))
		} else {
			r.line("   WHERE %s %s= %s  -- the group", row, after, at)
		}
		r.line("     AND %s %s %s", row, until, at)
		r.equalities("e")
		r.gated()
		r.line("   ORDER BY %s", strings.Join(order, ", "))
	}
	r.line("   LIMIT %s", r.arg(argLimit, "int"))
}

// rowColumns are the columns besides the age that a decision reads from a row.
func (r *renderer) rowColumns() []string {
	var cols []string
	add := func(c string) {
		if c == r.sweep.Age {
			return
		}
		for _, have := range cols {
			if have == c {
				return
			}
		}
		cols = append(cols, c)
	}
	for _, m := range r.arm.Only {
		add(m.Column)
	}
	for _, m := range r.arm.Part {
		add(m.Column)
	}
	if r.arm.Own != nil {
		add(r.arm.Own.Column)
	}
	if r.arm.Hold != "" {
		add(r.arm.Hold)
	}
	if r.arm.State != nil {
		add(r.arm.State.Column)
	}
	if r.arm.Owner != nil {
		for _, k := range r.arm.Owner.Key {
			add(k.Target)
		}
	}
	if r.group {
		for _, c := range r.ties.columns {
			add(c.name)
		}
	}
	return cols
}

// equalities are the conditions of the range, which the index settles: by the columns that it leads with, or by its
// predicate. They are written as a planner proves from them.
func (r *renderer) equalities(alias string) {
	for _, e := range r.arm.Equal {
		r.line("     AND %s.%s = %s", alias, ident(e.Column), typed(e.Value, r.col(e.Column)))
	}
	for _, m := range r.arm.Within {
		r.line("     AND %s", within(alias, m, r.col(m.Column)))
	}
}

func (r *renderer) gated() {
	if r.gate {
		r.line("     AND (SELECT g.ok FROM gate g)")
	}
}

// from is where the rows of the batch come from, as alias e.
func (r *renderer) from() {
	switch {
	case r.arm.Parents() && !r.look:
		r.line("    FROM seen e")
		r.line("   WHERE e.%s <= %s AND e.%s IS NULL", r.ours("n"), r.most(), r.ours("owed"))
		return
	case r.group || r.look:
		r.line("    FROM seen e")
		r.line("   WHERE true")
		return
	}
	at := r.at("e")
	r.line("    FROM ONLY %s e", tableName(r.table.name))
	r.line("   WHERE %s < coalesce((SELECT g.at FROM edge g), %s)  -- the one upper bound", at, r.arg(argCutoff, "timestamptz"))
	r.line("     AND %s >= %s  -- cursor", at, r.arg(argAfter, "timestamptz"))
	r.equalities("e")
	r.gated()
}

func (r *renderer) tid() string {
	if r.group {
		return "e." + r.ours("tid")
	}
	return "e.ctid"
}

// owners groups the rows by owner, locks each distinct owner that lets go with one probe of its key, and asks those that
// were not got for their state. The lock is what a reopening must wait for, or is waited for: LockRows looks at the newest
// version, so the guard cannot pass on a stale row. A live owner is never locked.
func (r *renderer) owners() {
	o := r.arm.Owner
	var keys, names, on []string
	for i, k := range o.Key {
		name := "k" + strconv.Itoa(i)
		keys = append(keys, "e."+ident(k.Target)+" AS "+name)
		names = append(names, "e."+ident(k.Target))
		on = append(on, "r."+ident(k.Owner)+" = k."+name)
	}
	c := r.known("e")
	r.cte("keys", "distinct owners of the range, with their rows")
	r.line("  SELECT %s, count(*) AS n", strings.Join(keys, ", "))
	r.line("       , %s AS outside, %s AS held, %s AS candidates", countIf(c.outside), countIf(c.held), countIf(c.candidate))
	if r.arm.Own != nil {
		r.line("       , %s AS unusable, %s AS raised", countIf(c.unusable), countIf(c.raised))
	}
	if r.look {
		age := ident(r.sweep.Age)
		r.line("       , %s AS oldest_held, %s AS oldest", oldestIf(age, c.held), oldestIf(age, c.candidate))
		r.line("       , %s AS late", r.latest(c.candidate))
	}
	r.from()
	r.line("   GROUP BY %s", strings.Join(names, ", "))
	state, _ := r.owner.column(o.Column)
	lets := in("r."+ident(o.Column), o.Terminal, state)
	lock := " FOR SHARE SKIP LOCKED"
	if o.Final || r.look {
		// The policy says that terminal states are final, so nothing can reopen; or nothing is removed. OFFSET 0 keeps the
		// probe: pulled up, it would be a join that reads every owner there is.
		lock = " OFFSET 0"
	}
	r.cte("owners", "got: terminal and locked against a reopening. ok: the state where not got")
	r.line("  SELECT k.*, l.got, s.ok FROM keys k")
	r.line("    LEFT JOIN LATERAL (SELECT true AS got FROM ONLY %s r", tableName(r.owner.name))
	r.line("                        WHERE %s", strings.Join(on, " AND "))
	r.line("                          AND %s  -- guard", lets)
	r.line("                          AND k.candidates > 0%s) l ON true", lock)
	r.line("    LEFT JOIN LATERAL (SELECT coalesce(%s, false) AS ok FROM ONLY %s r", lets, tableName(r.owner.name))
	r.line("                        WHERE l.got IS NULL AND %s OFFSET 0) s ON true", strings.Join(on, " AND "))
}

// tally counts what the batch looked at; each row falls in exactly one class.
func (r *renderer) tally() {
	r.cte("tally", "counts of one snapshot")
	if r.arm.Owner == nil {
		c := r.classes("e")
		r.line("  SELECT count(*) AS examined, %s AS outside, %s AS held, 0 AS locked, 0 AS orphan", countIf(c.outside), countIf(c.held))
		r.line("       , %s AS unusable, %s AS raised", countIf(c.unusable), countIf(c.raised))
		r.line("       , array_agg(%s)%s AS tids", r.tid(), filter(c.candidate))
		r.from()
		return
	}
	r.line("  SELECT coalesce(sum(o.n), 0)::bigint AS examined")
	r.line("       , coalesce(sum(o.outside), 0)::bigint AS outside")
	r.line("       , (coalesce(sum(o.held), 0) + coalesce(sum(o.candidates) FILTER (WHERE o.got IS NULL AND NOT o.ok), 0))::bigint AS held")
	r.line("       , coalesce(sum(o.candidates) FILTER (WHERE o.got IS NULL AND o.ok), 0)::bigint AS locked  -- terminal, but somebody holds it")
	r.line("       , coalesce(sum(o.candidates) FILTER (WHERE o.got IS NULL AND o.ok IS NULL), 0)::bigint AS orphan  -- no such owner, or no key to it")
	if r.arm.Own != nil {
		r.line("       , coalesce(sum(o.unusable), 0)::bigint AS unusable, coalesce(sum(o.raised), 0)::bigint AS raised")
	} else {
		r.line("       , 0 AS unusable, 0 AS raised")
	}
	r.line("    FROM owners o")
}

// picked is the list of rows to remove, by address.
func (r *renderer) picked() {
	r.cte("picked", "what this batch may remove, and nothing else")
	if r.arm.Owner == nil {
		r.line("  SELECT coalesce(t.tids, '{}') AS tids FROM tally t")
		return
	}
	// The range is read a second time, which costs a quarter less than addresses gathered by owner: the first reading is of
	// the index alone.
	candidate := r.classes("e").candidate
	var keys, names []string
	for i, k := range r.arm.Owner.Key {
		keys = append(keys, "e."+ident(k.Target))
		names = append(names, "o.k"+strconv.Itoa(i))
	}
	r.line("  SELECT ARRAY(SELECT %s", r.tid())
	r.from()
	if candidate != "true" {
		r.line("     AND %s", candidate)
	}
	r.line("     AND (%s) IN (SELECT %s FROM owners o WHERE o.got)  -- guard", strings.Join(keys, ", "), strings.Join(names, ", "))
	r.line("  ) AS tids")
}

// mine locks the picked rows that nobody else holds.
func (r *renderer) mine() {
	r.cte("mine", "those that nobody has locked")
	r.line("  SELECT d.ctid AS tid FROM ONLY %s d", tableName(r.table.name))
	r.line("   WHERE d.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])")
	r.again()
	r.line("     FOR UPDATE SKIP LOCKED")
}

// gone deletes by address, and asks age and state again: a row that had to be waited for is judged by what it has become.
func (r *renderer) gone() {
	r.cte("gone", "by address: a Tid Scan under every plan")
	r.line("  DELETE FROM ONLY %s d", tableName(r.table.name))
	if r.mode == pruner.SkipLocked {
		r.line("   WHERE d.ctid = ANY (ARRAY(SELECT m.tid FROM mine m))")
	} else {
		r.line("   WHERE d.ctid = ANY ((SELECT p.tids FROM picked p)::tid[])")
	}
	r.again()
	if r.returning() {
		r.line("  RETURNING d.ctid AS tid")
	}
}

// returning reports whether the statement itself counts what it removed.
func (r *renderer) returning() bool {
	return r.deletes() && (!r.exact() || r.mode == pruner.SkipLocked || r.remembers())
}

// remembers reports whether the rows that stay must be known by address, to pass over them in the next batch.
func (r *renderer) remembers() bool { return r.group && len(r.ties.columns) == 0 }

// again repeats, on the row to be removed, all that can change while the batch waits for it. IS TRUE keeps it a filter:
// were it a condition that an index can serve, the planner might walk the range once more and compare each row with the
// whole list of addresses, instead of going to the addresses.
func (r *renderer) again() {
	at := r.at("d")
	if r.group {
		r.line("     AND (%s = %s  -- age, again", at, r.arg(argAfter, "timestamptz"))
	} else {
		r.line("     AND (%s < coalesce((SELECT g.at FROM edge g), %s)  -- age, again", at, r.arg(argCutoff, "timestamptz"))
		r.line("     AND %s >= %s", at, r.arg(argAfter, "timestamptz"))
	}
	r.equalities("d")
	if candidate := r.classes("d").candidate; candidate != "true" {
		r.line("     AND %s  -- state, again", candidate)
	}
	r.line("         ) IS TRUE")
}

// result is the one row that a batch answers with.
func (r *renderer) result() {
	removed, mine := "NULL::bigint", "cardinality(p.tids)"
	if r.mode == pruner.SkipLocked {
		mine = "(SELECT count(*) FROM mine)"
	}
	if r.returning() {
		removed = "(SELECT count(*) FROM gone)"
		r.cte("stayed", "picked, and still there: to be looked at again")
		r.line("  SELECT coalesce(array_agg(x.tid)::text, '{}') AS tids")
		if r.mode == pruner.SkipLocked {
			r.line("    FROM (SELECT m.tid FROM mine m EXCEPT SELECT g.tid FROM gone g) x")
		} else {
			r.line("    FROM (SELECT unnest(p.tids) AS tid FROM picked p EXCEPT SELECT g.tid FROM gone g) x")
		}
		r.line("   WHERE (SELECT count(*) FROM gone) < %s", strings.ReplaceAll(mine, "p.tids", "(SELECT p.tids FROM picked p)"))
	}
	r.b.WriteString(")\n")
	r.line("SELECT t.examined, t.outside, t.held, t.locked, t.orphan, cardinality(p.tids) AS picked, %s AS mine, %s AS removed", mine, removed)
	if r.gate {
		r.line("     , (SELECT g.ok FROM gate g) AS ok")
	} else {
		r.line("     , true AS ok")
	}
	if r.returning() {
		r.line("     , set_config('prunectl.stayed', (SELECT y.tids FROM stayed y), true) AS stayed  -- of this transaction only")
	} else {
		r.line("     , NULL::text AS stayed")
	}
	if r.group {
		r.line("     , NULL::bigint AS edge")
		if len(r.ties.columns) > 0 {
			var texts, order []string
			for _, c := range r.ties.columns {
				texts = append(texts, "e."+ident(c.name)+"::text")
				order = append(order, "e."+ident(c.name)+map[bool]string{false: " DESC", true: ""}[r.ties.desc])
			}
			r.line("     , (SELECT to_json(ARRAY[%s])::text FROM seen e ORDER BY %s LIMIT 1) AS last", strings.Join(texts, ", "), strings.Join(order, ", "))
		} else {
			gone := ""
			if r.deletes() {
				gone = " EXCEPT SELECT g.tid FROM gone g"
			}
			r.line("     , (SELECT coalesce(array_agg(x.tid)::text, '{}') FROM (SELECT %s AS tid FROM seen e%s) x) AS last", r.tid(), gone)
		}
	} else {
		r.line("     , (SELECT (extract(epoch FROM g.at) * 1000000)::bigint FROM edge g) AS edge  -- microseconds")
		r.line("     , NULL::text AS last")
	}
	r.line("     , t.unusable, t.raised")
	r.line("  FROM tally t, picked p")
}
