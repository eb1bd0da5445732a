package postgres

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// A batch of a purge is several steps of one transaction, as in the parent form of a sweep: [removal.pickSQL] takes the
// tenant's next rows and locks those that nobody has locked; [removal.deleteSQL] removes those of them that no row refers
// to, asked on a snapshot that is younger than the locks; [removal.afterSQL] says what keeps the others. Addresses go from
// step to step in settings of the transaction: the rows are locked, so none of them moves.
//
// No foreign key ever acts on another row here, whatever its action: a row that is referred to stays. None can be referred
// to anew while it is locked, since a new reference shares the lock of the row that it refers to.

// The parameters of the steps, beside those of every batch.
const (
	argTenant = "tenant" // text, cast to the type of the column that says whose a row is
	argGate   = "gate"   // bigint: what keeps two purges of one tenant apart
	argKey    = "key"    // key0, key1, ..: the last key so far
	argEdge   = "edge"   // edge0, edge1, ..: the last key of the tenant when the pass began
	argFrom   = "from"   // tid, exclusive: where a pass by pages is
	argUntil  = "until"  // tid, exclusive: where its batch ends
	argWhose  = "whose"  // whose0, whose1, ..: the key, or whose: the address, of the row that is emptied
)

// form says which text of a step's statements is wanted.
type form struct {
	mode pruner.Mode
	next bool // a batch after the first, where rows are walked by a key
	one  bool // the rows that refer to one row, which are more than fit in a batch
	last bool // after the last of them, where they are walked by a key
}

func (f form) locks() bool { return f.mode == pruner.Remove || f.mode == pruner.SkipLocked }

// settingsSQL sets what holds for this transaction only. Its answer begins with the timeouts in force, in milliseconds.
func (s *removal) settingsSQL() statement {
	r := &renderer{}
	inMillis := "(extract(epoch FROM set_config('%s', (%s)::text, true)::interval) * 1000)::bigint"
	r.line("SELECT "+inMillis, "statement_timeout", atMost("statement_timeout", r.arg(argStatementTimeout, "bigint")))
	r.line("     , "+inMillis, "lock_timeout", atMost("lock_timeout", r.arg(argLockTimeout, "bigint")))
	r.line("     , set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)  -- what is said to be gone is gone")
	r.purgeSettings(s.purge)
	return statement{r.b.String(), r.args}
}

// lookSettingsSQL sets the same for a read-only look, which may take its time.
func lookSettingsSQL(p *policy.Purge) string {
	r := &renderer{}
	r.line("SELECT set_config('lock_timeout', (%s)::text, true)", atMost("lock_timeout", millis(p.Timeouts.Lock)))
	r.purgeSettings(p)
	return r.b.String()
}

// purgeSettings pin the plans: by index or by address, rows that refer to others by a probe of their key each.
func (r *renderer) purgeSettings(p *policy.Purge) {
	for _, pin := range pins {
		value := pin.value
		if pin.name == "enable_nestloop" {
			value = "on"
		}
		r.line("     , set_config('%s', '%s', true)", pin.name, value)
	}
	r.line("     , set_config('enable_hashjoin', 'off', true)")
	for _, set := range p.Set {
		r.line("     , set_config(%s, %s, true)", literal(set.Name), literal(set.Value))
	}
	r.line("     , set_config('row_security', 'off', true)  -- an error instead of rows that are silently not seen")
}

// value is the tenant as the column has it.
func (s *removal) value(r *renderer) string {
	v := r.arg(argTenant, "text")
	if t := s.column().typ; t != "pg_catalog.text" {
		v += "::" + t
	}
	return v
}

// pickSQL takes the next rows, and locks those that nobody else has locked.
func (s *removal) pickSQL(f form) statement {
	r := &renderer{}
	r.cte("gate", "one purge of a tenant at a time; the loser reads nothing")
	r.line("  SELECT pg_try_advisory_xact_lock(%s) AS ok", r.arg(argGate, "bigint"))
	if s.child() {
		s.page(r, f)
		s.found(r, f)
		s.fitting(r, f)
	} else {
		s.ownRows(r, f)
	}
	if s.edged(f) {
		s.edge(r)
	}
	if f.locks() {
		s.mine(r)
	}
	r.b.WriteString(")\n")
	picked := "seen"
	if f.locks() {
		picked = "mine"
	}
	r.line("SELECT (SELECT count(*) FROM seen s) AS examined, (SELECT count(*) FROM %s m) AS picked, (SELECT g.ok FROM gate g) AS ok", picked)
	if f.locks() {
		r.line("     , set_config('%s', (SELECT coalesce(array_agg(m.tid), '{}')::text FROM mine m), true)", setPicked)
	} else {
		r.line("     , NULL::text  -- stepped over: nothing is locked")
	}
	s.places(r, f)
	return statement{r.b.String(), r.args}
}

// ownRows are the next rows of a table that says itself whose they are.
func (s *removal) ownRows(r *renderer, f form) {
	r.cte("seen", "the next rows of the tenant")
	r.line("  SELECT %s FROM ONLY %s e", strings.Join(append([]string{"e.ctid AS tid"}, s.keysAs("e")...), ", "), tableName(s.top().name))
	s.walkSQL(r, f, argLimit)
}

// keysAs are the columns of the walk, by names of our own.
func (s *removal) keysAs(alias string) (cols []string) {
	for i, k := range s.keys {
		cols = append(cols, alias+"."+ident(k.name)+" AS k"+strconv.Itoa(i))
	}
	return cols
}

// walkSQL are the conditions and the order of the tenant's next rows, as alias e.
func (s *removal) walkSQL(r *renderer, f form, limit string) {
	col := "e." + ident(s.column().name)
	gated := "     AND (SELECT g.ok FROM gate g)"
	switch s.walk {
	case byKey:
		// Two bounds and no equality: it would leave the key alone to order by, and the planner free to walk another index on
		// that, past the rows of every other tenant.
		have, last, edge, order := []string{col}, []string{s.value(r)}, []string{s.value(r)}, []string{col}
		if s.alone() {
			have, last, edge, order = nil, nil, nil, nil
		}
		for i, k := range s.keys {
			name := "e." + ident(k.name)
			have, order = append(have, name), append(order, name)
			if f.next {
				last = append(last, r.arg(argKey+strconv.Itoa(i), "text")+"::"+k.typ)
			}
			if f.next && !s.alone() {
				edge = append(edge, r.arg(argEdge+strconv.Itoa(i), "text")+"::"+k.typ)
			}
		}
		if f.next {
			r.line("   WHERE (%s) > (%s)  -- whose, after the batch before", strings.Join(have, ", "), strings.Join(last, ", "))
		} else {
			r.line("   WHERE %s >= %s  -- whose", col, s.value(r))
		}
		if f.next && !s.alone() {
			r.line("     AND (%s) <= (%s)  -- up to the last one when the pass began", strings.Join(have, ", "), strings.Join(edge, ", "))
		} else {
			r.line("     AND %s <= %s", col, s.value(r))
		}
		r.line("%s", gated)
		r.line("   ORDER BY %s LIMIT %s", strings.Join(order, ", "), r.arg(limit, "int"))
	case byIndex:
		r.line("   WHERE %s = %s  -- whose", col, s.value(r))
		r.line("     AND NOT (e.ctid = ANY (%s))  -- no index orders them: those that stayed are passed over by address", r.arg(argPassed, "tid[]"))
		r.line("%s", gated)
		r.line("   LIMIT %s", r.arg(limit, "int"))
	default:
		r.line("   WHERE e.ctid > %s AND e.ctid < %s  -- some pages of the table, in their order", r.arg(argFrom, "tid"), r.arg(argUntil, "tid"))
		r.line("     AND (%s = %s) IS TRUE  -- whose; a filter, since an index would give another order", col, s.value(r))
		r.line("%s", gated)
		r.line("   LIMIT %s", r.arg(limit, "int"))
	}
}

// alone reports whether the column that says whose a row is is a key by itself: a tenant has one row at most.
func (s *removal) alone() bool { return s.keys[0].name == s.column().name }

// edged reports whether a batch reads the last key of the tenant.
func (s *removal) edged(f form) bool {
	return s.walk == byKey && !s.alone() && !f.next && !f.one
}

// edge is where a pass by key ends: the last row of the tenant as it begins, by the same index from behind. Without it, a
// writer that adds larger keys faster than batches go would keep the pass from ending.
func (s *removal) edge(r *renderer) {
	some := "seen"
	if s.child() {
		some = "page"
	}
	col := "l." + ident(s.column().name)
	order := []string{col + " DESC"}
	for _, k := range s.keys {
		order = append(order, "l."+ident(k.name)+" DESC")
	}
	r.cte("edge", "the last row of the tenant as the pass begins: larger keys that come meanwhile are for the next one")
	r.line("  SELECT %s FROM ONLY %s l", strings.Join(s.keysAs("l"), ", "), tableName(s.top().name))
	r.line("   WHERE %s <= %s", col, s.value(r))
	r.line("     AND (SELECT true FROM %s s LIMIT 1)  -- who has none, or lost the gate, reads nothing", some)
	r.line("   ORDER BY %s LIMIT 1", strings.Join(order, ", "))
}

// mine locks the rows: FOR UPDATE, so that a new row that refers to one of them has to wait, or is waited for elsewhere.
func (s *removal) mine(r *renderer) {
	of := ""
	if s.child() {
		of = s.held(r)
	}
	r.cte("mine", "those that nobody has locked, against changes and new references")
	r.line("  SELECT d.ctid AS tid FROM ONLY %s d", tableName(s.table().name))
	r.line("   WHERE d.ctid = ANY (ARRAY(SELECT s.tid FROM seen s%s))", of)
	if !s.child() {
		r.line("     AND (%s) IS TRUE  -- whose, again", s.whose(r, 0, "d"))
	}
	r.line("     FOR UPDATE SKIP LOCKED")
}

// whose is the condition that a row of the chain's table at this depth is the tenant's: by itself, or by the row that it
// refers to. IS TRUE keeps it a filter.
func (s *removal) whose(r *renderer, depth int, alias string) string {
	if depth == 0 {
		return alias + "." + ident(s.column().name) + " = " + s.value(r)
	}
	up := "u" + strconv.Itoa(depth)
	var on []string
	for _, k := range s.chain[depth].key {
		on = append(on, up+"."+ident(k.Parent)+" = "+alias+"."+ident(k.Child))
	}
	return fmt.Sprintf("SELECT true FROM ONLY %s %s WHERE %s AND (%s) IS TRUE LIMIT 1", tableName(s.chain[depth-1].table.name), up, strings.Join(on, " AND "), s.whose(r, depth-1, up))
}

// deleteSQL removes the picked rows that no row refers to.
func (s *removal) deleteSQL() statement {
	r := &renderer{}
	r.line("DELETE FROM ONLY %s d", tableName(s.table().name))
	r.line(" WHERE d.ctid = ANY (%s)  -- locked by this transaction, so still what was picked", tids(setPicked))
	r.line("   AND (%s) IS TRUE  -- whose, again", s.whose(r, len(s.chain)-1, "d"))
	for _, k := range s.refs {
		r.line("   AND (%s LIMIT 1) IS NULL  -- %s: nothing refers to it, or it would take that along", k.probe("d"), remark(k.name))
	}
	return statement{r.b.String(), r.args}
}

// remark is a name for a comment, which a line break would end.
func remark(name string) string { return strconv.QuoteToASCII(name) }

// afterSQL looks again at the rows that were picked and are still there, counts them by the key that keeps them, and says
// the transaction's id.
func (s *removal) afterSQL(f form) statement {
	r := &renderer{}
	r.line("SELECT count(*) AS left, %s AS xid", transactionSQL)
	if s.passes(f) {
		r.line("     , (SELECT coalesce(array_agg(d.ctid)::text, '{}') FROM ONLY %s d WHERE d.ctid = ANY (%s)) AS passed", tableName(s.table().name), tids(setPassed))
	} else {
		r.line("     , NULL::text AS passed")
	}
	var counts []string
	for i := range s.refs {
		counts = append(counts, fmt.Sprintf("count(*) FILTER (WHERE x.by = %d)", i+1))
	}
	if len(counts) == 0 {
		r.line("     , '[]'::text AS kept")
		r.line("  FROM (SELECT FROM ONLY %s p", tableName(s.table().name))
	} else {
		r.line("     , to_json(ARRAY[%s])::text AS kept  -- by each key", strings.Join(counts, ", "))
		r.line("  FROM (SELECT CASE")
		for i, k := range s.refs {
			r.line("                 WHEN (%s LIMIT 1) IS NOT NULL THEN %d  -- %s", k.probe("p"), i+1, remark(k.name))
		}
		r.line("                 ELSE 0 END AS by FROM ONLY %s p", tableName(s.table().name))
	}
	r.line("         WHERE p.ctid = ANY (%s) OFFSET 0) x  -- each probe once", tids(setPicked))
	return statement{r.b.String(), r.args}
}

// probe reads a row that refers to the row of this alias by the key. A row that refers to itself goes with itself.
func (k reference) probe(alias string) string {
	only, self := "ONLY ", ""
	if k.partitioned {
		only = ""
	}
	if k.self {
		self = " AND c.ctid <> " + alias + ".ctid"
	}
	var on []string
	for _, p := range k.pairs {
		on = append(on, "c."+ident(p.Child)+" = "+alias+"."+ident(p.Parent))
	}
	return "SELECT true FROM " + only + tableName(k.table) + " c WHERE " + strings.Join(on, " AND ") + self
}

// places answers where the batch ended.
func (s *removal) places(r *renderer, f form) {
	if s.child() {
		s.childPlaces(r, f)
		return
	}
	switch s.walk {
	case byKey:
		r.line("     , (SELECT %s FROM seen s ORDER BY %s LIMIT 1) AS last", s.keyText("s"), s.keyOrder("s"))
	case byPages:
		r.line("     , (SELECT max(s.tid)::text FROM seen s) AS last")
	default:
		if f.locks() {
			r.line("     , set_config('%s', (SELECT coalesce(array_agg(s.tid), '{}')::text FROM seen s), true) AS last", setPassed)
		} else {
			r.line("     , (SELECT coalesce(array_agg(s.tid), '{}')::text FROM seen s) AS last")
		}
	}
	s.ends(r, f)
}

// ends answers where a pass that begins now is to end: behind the last key; behind the last page; or, where no index orders
// the rows and where those of one row are emptied, after as many rows as the table has room for.
func (s *removal) ends(r *renderer, f form) {
	size := func(t *table) string { return "pg_relation_size(" + literal(tableName(t.name)) + "::regclass)" }
	switch {
	case s.edged(f):
		r.line("     , (SELECT %s FROM edge e) AS ends  -- the last key", s.keyText("e"))
	case f.one || s.walk == byIndex:
		r.line("     , %s AS ends  -- the bytes in which its rows are", size(s.table()))
	case s.walk == byPages:
		r.line("     , %s / current_setting('block_size')::bigint AS ends  -- its pages", size(s.top()))
	default:
		r.line("     , NULL::text AS ends")
	}
}

// keyText is the key of a row of ours as a list of texts.
func (s *removal) keyText(alias string) string {
	texts := make([]string, len(s.keys))
	for i := range s.keys {
		texts[i] = alias + ".k" + strconv.Itoa(i) + "::text"
	}
	return "to_json(ARRAY[" + strings.Join(texts, ", ") + "]::text[])::text"
}

func (s *removal) keyOrder(alias string) string {
	order := make([]string, len(s.keys))
	for i := range s.keys {
		order[i] = alias + ".k" + strconv.Itoa(i) + " DESC"
	}
	return strings.Join(order, ", ")
}
