package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/prunectl/prunectl/policy"
)

const pending = "is partial; whether it serves can be seen when the other findings are mended"

// part is a part of the sweep: all of its rows, or those with and those without a window of their own.
type part struct {
	name string // "" for all
	key  string // of the policy file
	arms func(policy.Index) []policy.Arm
	own  bool
}

// parts are those that an index has to serve: a part that keeps its rows for ever needs none.
func (i *Inspection) parts() (ps []part) {
	s := &i.Sweep
	all := part{key: "index", arms: s.Arms}
	if s.Own == nil {
		return []part{all}
	}
	if !s.Shortest().IsNever() {
		all.name = "rows without a window of their own"
		ps = append(ps, all)
	}
	return append(ps, part{name: "rows with a window of their own", key: "row_window", arms: s.OwnArms, own: true})
}

// candidate is an index that may serve a part, by the one or the other of its columns.
type candidate struct {
	index  index
	shape  policy.Index
	at     int
	expiry string // the generated column, "" for an expression or an age
	arms   []policy.Arm
}

// candidates are the ways in which the index could serve the part.
func (p part) candidates(i *Inspection, x index) (cs []candidate) {
	t := i.target.table
	plain := x.shape(t)
	add := func(shape policy.Index, at int, expiry string) {
		if arms := p.arms(shape); arms != nil {
			cs = append(cs, candidate{x, shape, at, expiry, arms})
		}
	}
	for n, name := range x.columns {
		switch {
		case name == i.Sweep.Age:
			add(plain, n, "")
		case p.own && (name == "" || slices.Contains(i.expiries, name)):
			shape := plain
			shape.Expiry = n + 1
			add(shape, n, name)
		}
	}
	return cs
}

// checkIndex picks the index that serves each part of the sweep, or refuses with the statement that would make one.
func (i *Inspection) checkIndex(ctx context.Context, q query) error {
	s := &i.Sweep
	if err := i.readExpiries(ctx, q); err != nil {
		return err
	}
	var found [][]candidate
	var reasons []map[string]string
	namedServes := false
	for _, p := range i.parts() {
		cs, why, err := i.serving(ctx, q, p)
		if err != nil {
			return err
		}
		found, reasons = append(found, cs), append(reasons, why)
		namedServes = namedServes || slices.ContainsFunc(cs, func(c candidate) bool { return c.index.name == s.Index })
	}
	for n, p := range i.parts() {
		cs := found[n]
		if s.Index != "" {
			// The index that is named serves the parts that it can, and one of them at least.
			if only := slices.DeleteFunc(slices.Clone(cs), func(c candidate) bool { return c.index.name != s.Index }); len(only) > 0 || !namedServes {
				cs = only
			}
		}
		if len(cs) == 0 {
			i.noIndex(p, reasons[n], s.Index != "" && !namedServes)
			continue
		}
		slices.SortStableFunc(cs, func(a, b candidate) int { return i.rank(b) - i.rank(a) })
		if err := i.choose(ctx, q, p, cs[0]); err != nil {
			return err
		}
	}
	return nil
}

// serving lists the ways in which an index serves the part, and says of every other index why it does not.
func (i *Inspection) serving(ctx context.Context, q query, p part) (cs []candidate, why map[string]string, err error) {
	f, t := &i.findings, i.target.table
	why = map[string]string{}
	for _, x := range t.indexes {
		ways := p.candidates(i, x)
		switch {
		case x.method != "btree":
			why[x.name] = "is no btree"
		case !x.valid:
			why[x.name] = "is not valid: a concurrent build of it failed; drop and build it again"
		case len(ways) == 0:
			why[x.name] = fmt.Sprintf("leads with (%s), not with %s", strings.Join(spoken(x.columns), ", "), strings.Join(i.wanted(p), ", "))
		case !collated(t, x):
			why[x.name] = "has another collation than its columns"
		case (x.predicate != "" || slices.Contains(x.columns, "")) && (!t.canUse || !t.canSelect || f.refused("rls") || f.refused("server")):
			why[x.name] = pending
		}
		if why[x.name] != "" {
			continue
		}
		why[x.name] = fmt.Sprintf("is partial (where %s), which does not follow from the sweep", x.predicate)
		if x.predicate == "" {
			why[x.name] = "has another expression than age and window make"
		}
		for _, w := range ways {
			serves, err := i.follows(ctx, q, w)
			if err != nil {
				return nil, nil, err
			}
			if serves {
				cs = append(cs, w)
			}
		}
	}
	return cs, why, nil
}

// spoken are the columns of an index for a message.
func spoken(columns []string) []string {
	cs := slices.Clone(columns)
	for n, c := range cs {
		if c == "" {
			cs[n] = "an expression"
		}
	}
	return cs
}

// choose takes the index for the part, and says what it costs.
func (i *Inspection) choose(ctx context.Context, q query, p part, c candidate) error {
	f, s := &i.findings, &i.Sweep
	for _, arm := range c.arms {
		i.arms = append(i.arms, served{arm, c.index, c.at, c.expiry})
	}
	what := fmt.Sprintf("%s (%s)", c.index.name, strings.Join(spoken(c.index.columns), ", "))
	if p.name != "" {
		what += " for " + p.name
	}
	f.ok("index", p.key, "%s", what)
	switch {
	case p.own && c.shape.Expiry == 0:
		f.warn("index", p.key, i.create(p), "%s leads with the age: rows past the floor are read in vain until their own window ends", c.index.name)
	case p.own && s.Own.ZeroNever:
		f.warn("index", p.key, "", "rows whose %s is 0 stay at the head of %s for ever, and each sweep reads them", s.Own.Column, c.index.name)
	case !p.own && s.UnequalWindows() && len(c.arms) == 1:
		f.warn("index", "window", i.create(p), "windows differ by state and %s leads with the age: rows of the states with longer windows are read in vain", c.index.name)
	}
	return i.checkTies(ctx, q, c)
}

// rank prefers, among indexes that serve, one by the expiry, then one that settles more of `only` and of the part, then one
// by which states with unequal windows are arms of their own, then one that orders rows of one age, then a whole one, then
// the narrower.
func (i *Inspection) rank(c candidate) int {
	n, arm := 0, c.arms[0]
	if arm.Expiry {
		n += 1_000_000
	}
	n += 10_000 * (len(i.Sweep.Only) - len(arm.Only) - len(arm.Part))
	if (len(c.arms) == 1) != i.Sweep.UnequalWindows() {
		n += 1000
	}
	if len(tiesOf(i.target.table, c.index, arm, c.at).columns) > 0 {
		n += 100
	}
	if c.index.predicate == "" {
		n += 10
	}
	return n - len(c.index.columns)
}

func collated(t *table, x index) bool {
	for n, name := range x.columns {
		if c, ok := t.column(name); ok && x.collations[n] != c.collation {
			return false
		}
	}
	return true
}

// follows asks the planner whether the index serves every arm, where it is partial or on an expression: that its predicate
// follows from the arm's text, and that the expression is the arm's own, are the planner's to prove.
func (i *Inspection) follows(ctx context.Context, q query, c candidate) (bool, error) {
	if c.index.predicate == "" && c.index.columns[c.at] != "" {
		return true, nil
	}
	for _, arm := range c.arms {
		t := i.target
		t.serve(served{arm, c.index, c.at, c.expiry})
		r := &renderer{target: &t}
		at := t.at("e")
		r.line("EXPLAIN (FORMAT JSON) SELECT %s AS at FROM ONLY %s e", at, tableName(t.table.name))
		r.line(" WHERE %s < now() AND %s >= '1990-01-01 00:00:00+00'::timestamptz", at, at)
		r.equalities("e")
		r.line(" ORDER BY %s LIMIT 1", at)
		if err := q.exec(ctx, i.target.readSettingsSQL()); err != nil {
			return false, err
		}
		var plan string
		if err := q.row(ctx, r.b.String()).Scan(&plan); err != nil {
			return false, fmt.Errorf("explain with index %s: %w", c.index.name, err)
		}
		if !names(plan, c.index.name) {
			return false, nil
		}
	}
	return true, nil
}

// names reports whether a plan scans this index with a condition, and tests nothing besides: what is left to a filter the
// index does not settle, and a batch would have to search for it.
func names(plan, index string) bool {
	var doc any
	if json.Unmarshal([]byte(plan), &doc) != nil {
		return false
	}
	var walk func(any) bool
	walk = func(v any) bool {
		switch v := v.(type) {
		case []any:
			return slices.ContainsFunc(v, walk)
		case map[string]any:
			if v["Index Name"] == index && v["Index Cond"] != nil && v["Filter"] == nil {
				return true
			}
			for _, c := range v {
				if walk(c) {
					return true
				}
			}
		}
		return false
	}
	return walk(doc)
}

// noIndex refuses, and says why each index that looks right does not serve. named: the one that the policy names has to.
func (i *Inspection) noIndex(p part, why map[string]string, named bool) {
	f, s := &i.findings, &i.Sweep
	fix := i.create(p)
	for _, reason := range why {
		if strings.HasPrefix(reason, pending) {
			fix = "" // it may well serve: not another one before that is known
		}
	}
	if named {
		if reason, ok := why[s.Index]; ok {
			f.refuse("index", "index", fix, "index %s %s", s.Index, reason)
		} else {
			f.refuse("index", "index", fix, "%s has no index %q", s.Table, s.Index)
		}
		return
	}
	var near []string
	for _, x := range i.target.table.indexes {
		if slices.Contains(x.columns, s.Age) || p.own && slices.Contains(x.columns, "") {
			near = append(near, x.name+" "+why[x.name])
		}
	}
	detail := fmt.Sprintf("no index leads with %s", strings.Join(i.wanted(p), ", "))
	if p.name != "" {
		detail += " for " + p.name
	}
	if len(near) > 0 {
		detail += " (" + strings.Join(near, "; ") + ")"
	}
	key := ""
	if p.own {
		key = p.key
	}
	f.refuse("index", key, fix, "%s", detail)
}

// wanted lists, for a message, what an index would best lead with for the part.
func (i *Inspection) wanted(p part) []string {
	cols := i.Sweep.WantedIndex()
	if p.own {
		cols = slices.DeleteFunc(cols, func(c string) bool { return i.Sweep.Guard.State != nil && c == i.Sweep.Guard.State.Column })
		cols[len(cols)-1] = fmt.Sprintf("%s and %s added up", i.Sweep.Age, i.Sweep.Own.Column)
	}
	return cols
}

// create is the statement that makes the best index for the part, ended with the primary key so that rows of one age can
// be walked in order.
func (i *Inspection) create(p part) string {
	s, t := &i.Sweep, i.target.table
	var terms []string
	cols := s.WantedIndex()
	for _, c := range cols {
		switch {
		case !p.own:
			terms = append(terms, ident(c))
		case c != s.Age:
			if g := s.Guard.State; g == nil || g.Column != c { // own windows are not the states'
				terms = append(terms, ident(c))
			}
		case len(i.expiries) > 0:
			terms = append(terms, ident(i.expiries[0]))
		default:
			terms = append(terms, "("+strings.ReplaceAll(i.target.sum("e"), "e.", "")+")")
		}
	}
	for _, c := range t.uniqueKey() {
		if !slices.Contains(cols, c) {
			terms = append(terms, ident(c))
		}
	}
	where := ""
	switch {
	case p.own:
		where = " WHERE " + ident(s.Own.Column) + " IS NOT NULL"
	case p.name != "":
		where = " WHERE " + ident(s.Own.Column) + " IS NULL"
	}
	return fmt.Sprintf("CREATE INDEX CONCURRENTLY ON %s (%s)%s;", tableName(t.name), strings.Join(terms, ", "), where)
}

// mostCommonSQL estimates, from the planner's statistics, how many rows share the most common age.
const mostCommonSQL = `SELECT coalesce((SELECT most_common_freqs[1] FROM pg_stats WHERE schemaname = $1::text AND tablename = $2::text AND attname = $3::text), 0)::float8`

// checkTies warns of more rows of one age than a batch examines, where no index orders them.
func (i *Inspection) checkTies(ctx context.Context, q query, c candidate) error {
	f, s, t, x := &i.findings, &i.Sweep, i.target.table, c.index
	if len(tiesOf(t, x, c.arms[0], c.at).columns) > 0 {
		f.ok("ties", "", "rows of one age are walked in the order of %s", x.name)
		return nil
	}
	column := s.Age // an expression has no statistics that are as easily read
	if c.expiry != "" {
		column = c.expiry
	}
	var freq float64
	if err := q.row(ctx, mostCommonSQL, t.name.Schema, t.name.Table, column).Scan(&freq); err != nil {
		return err
	}
	if n := freq * max(t.rows, 0); n > float64(s.Batch.Limit) {
		fix := ""
		if !slices.Contains(x.columns, "") && x.predicate == "" {
			fix = createIndex(t.name, append(slices.Clone(x.columns), slices.DeleteFunc(t.uniqueKey(), func(c string) bool { return slices.Contains(x.columns, c) })...))
		}
		f.warn("ties", "", fix, "about %.0f rows share one age, more than a batch examines, and %s does not order them", n, x.name)
	}
	return nil
}
