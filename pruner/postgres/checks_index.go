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

// checkIndex picks the index that serves the sweep, or refuses with the statement that would make one.
func (i *Inspection) checkIndex(ctx context.Context, q query) error {
	f, s, t := &i.findings, &i.Sweep, i.target.table
	var candidates []index
	why := map[string]string{}
	for _, x := range t.indexes {
		arms := s.Arms(x.shape(t))
		switch {
		case s.Index != "" && x.name != s.Index:
		case x.method != "btree":
			why[x.name] = "is no btree"
		case !x.valid:
			why[x.name] = "is not valid: a concurrent build of it failed; drop and build it again"
		case arms == nil:
			why[x.name] = fmt.Sprintf("leads with (%s), not with %s", strings.Join(x.columns, ", "), strings.Join(s.WantedIndex(), ", "))
		case !collated(t, x):
			why[x.name] = "has another collation than its columns"
		case x.predicate != "" && (f.refused("rights") || f.refused("rls") || f.refused("server")):
			why[x.name] = pending
		default:
			serves, err := i.follows(ctx, q, x, arms)
			if err != nil {
				return err
			}
			if serves {
				candidates = append(candidates, x)
			} else {
				why[x.name] = fmt.Sprintf("is partial (where %s), which does not follow from the sweep", x.predicate)
			}
		}
	}
	if len(candidates) == 0 {
		i.noIndex(why)
		return nil
	}
	slices.SortStableFunc(candidates, func(a, b index) int { return i.rank(b) - i.rank(a) })
	i.target.index = candidates[0]
	i.arms = s.Arms(candidates[0].shape(t))
	f.ok("index", "index", "%s (%s)", candidates[0].name, strings.Join(candidates[0].columns, ", "))
	if s.UnequalWindows() && len(i.arms) == 1 {
		f.warn("index", "window", i.create(s.WantedIndex()), "windows differ by state and %s leads with the age: rows of the states with longer windows are read in vain", candidates[0].name)
	}
	return i.checkTies(ctx, q)
}

// rank prefers, among indexes that serve, one that settles more of `only`, then one by which states with unequal windows
// are arms of their own, then one that orders rows of one age, then a whole one, then the narrower.
func (i *Inspection) rank(x index) int {
	arms := i.Sweep.Arms(x.shape(i.target.table))
	n := 0
	if len(arms) > 0 {
		n += 10_000 * (len(i.Sweep.Only) - len(arms[0].Only))
	}
	if (len(arms) == 1) != i.Sweep.UnequalWindows() {
		n += 1000
	}
	if len(arms) > 0 && len(tiesOf(i.target.table, x, arms[0], i.Sweep.Age).columns) > 0 {
		n += 100
	}
	if x.predicate == "" {
		n += 10
	}
	return n - len(x.columns)
}

func collated(t *table, x index) bool {
	for n, name := range x.columns {
		if c, ok := t.column(name); ok && x.collations[n] != c.collation {
			return false
		}
	}
	return true
}

// follows asks the planner whether a partial index serves every arm: that its predicate follows from the arm's text is
// the planner's to prove.
func (i *Inspection) follows(ctx context.Context, q query, x index, arms []policy.Arm) (bool, error) {
	if x.predicate == "" {
		return true, nil
	}
	for _, arm := range arms {
		t := i.target
		t.arm = arm
		r := &renderer{target: &t}
		r.line("EXPLAIN (FORMAT JSON) SELECT e.%s FROM ONLY %s e", ident(i.Sweep.Age), tableName(t.table.name))
		r.line(" WHERE e.%s < now() AND e.%s >= '1990-01-01 00:00:00+00'::timestamptz", ident(i.Sweep.Age), ident(i.Sweep.Age))
		r.equalities("e")
		r.line(" ORDER BY e.%s LIMIT 1", ident(i.Sweep.Age))
		if err := q.exec(ctx, i.target.readSettingsSQL()); err != nil {
			return false, err
		}
		var plan string
		if err := q.row(ctx, r.b.String()).Scan(&plan); err != nil {
			return false, fmt.Errorf("explain with index %s: %w", x.name, err)
		}
		if !names(plan, x.name) {
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

// noIndex refuses, and says why each index that looks right does not serve.
func (i *Inspection) noIndex(why map[string]string) {
	f, s := &i.findings, &i.Sweep
	fix := i.create(s.WantedIndex())
	for _, reason := range why {
		if strings.HasPrefix(reason, pending) {
			fix = "" // it may well serve: not another one before that is known
		}
	}
	if s.Index != "" {
		if reason, ok := why[s.Index]; ok {
			f.refuse("index", "index", fix, "index %s %s", s.Index, reason)
		} else {
			f.refuse("index", "index", fix, "%s has no index %q", s.Table, s.Index)
		}
		return
	}
	var near []string
	for _, x := range i.target.table.indexes {
		if slices.Contains(x.columns, s.Age) {
			near = append(near, x.name+" "+why[x.name])
		}
	}
	detail := fmt.Sprintf("no index leads with %s", strings.Join(s.WantedIndex(), ", "))
	if len(near) > 0 {
		detail += " (" + strings.Join(near, "; ") + ")"
	}
	f.refuse("index", "", fix, "%s", detail)
}

// create is the statement that makes an index on these columns, ended with the primary key so that rows of one age can be
// walked in order.
func (i *Inspection) create(columns []string) string {
	t := i.target.table
	cols := slices.Clone(columns)
	for _, x := range t.indexes {
		if !x.unique || !x.valid || !x.immediate || x.predicate != "" || slices.Contains(x.columns, "") {
			continue
		}
		if slices.ContainsFunc(x.columns, func(c string) bool { col, _ := t.column(c); return !col.notNull }) {
			continue
		}
		for _, c := range x.columns {
			if !slices.Contains(cols, c) {
				cols = append(cols, c)
			}
		}
		break
	}
	for n, c := range cols {
		cols[n] = ident(c)
	}
	return fmt.Sprintf("CREATE INDEX CONCURRENTLY ON %s (%s);", tableName(t.name), strings.Join(cols, ", "))
}

// mostCommonSQL estimates, from the planner's statistics, how many rows share the most common age.
const mostCommonSQL = `SELECT coalesce((SELECT most_common_freqs[1] FROM pg_stats WHERE schemaname = $1::text AND tablename = $2::text AND attname = $3::text), 0)::float8`

// checkTies warns of more rows of one age than a batch examines, where no index orders them.
func (i *Inspection) checkTies(ctx context.Context, q query) error {
	f, s, t := &i.findings, &i.Sweep, i.target.table
	if len(tiesOf(t, i.target.index, i.arms[0], s.Age).columns) > 0 {
		f.ok("ties", "", "rows of one age are walked in the order of %s", i.target.index.name)
		return nil
	}
	var freq float64
	if err := q.row(ctx, mostCommonSQL, t.name.Schema, t.name.Table, s.Age).Scan(&freq); err != nil {
		return err
	}
	if n := freq * max(t.rows, 0); n > float64(s.Batch.Limit) {
		f.warn("ties", "", i.create(slices.Clone(i.target.index.columns)), "about %.0f rows share one age, more than a batch examines, and %s does not order them", n, i.target.index.name)
	}
	return nil
}
