package postgres

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/policy"
)

func scanText(r pgx.CollectableRow) (s string, err error) { return s, r.Scan(&s) }

// checkStates holds the declared states and matched values against what the column can contain: an enum's labels, a
// domain of booleans, or a CHECK on the column alone.
func (i *Inspection) checkStates(ctx context.Context, q query) error {
	s, t := &i.Sweep, i.target.table
	if g := s.Guard.State; g != nil {
		if err := i.checkList(ctx, q, t, g.Column, "guard", g.Terminal, g.Live); err != nil {
			return err
		}
	}
	if g := s.Guard.Owner; g != nil && i.target.owner != nil {
		if err := i.checkList(ctx, q, i.target.owner, g.Column, "guard.owner", g.Terminal, g.Live); err != nil {
			return err
		}
	}
	for _, m := range s.Only {
		c, _ := t.column(m.Column)
		for _, v := range m.Values {
			if why := i.impossible(ctx, q, c, v); why != "" {
				i.findings.refuse("state", "only."+m.Column, "", "%s", why)
			}
		}
	}
	return nil
}

// checkList holds one terminal and one live list against a column.
func (i *Inspection) checkList(ctx context.Context, q query, t *table, name, key string, terminal, live []policy.Value) error {
	f := &i.findings
	c, _ := t.column(name)
	possible, constrained, err := possibleValues(ctx, q, t, c)
	if err != nil {
		return err
	}
	bad := false
	for _, l := range []struct {
		key    string
		values []policy.Value
	}{{key + ".terminal", terminal}, {key + ".live", live}} {
		for _, v := range l.values {
			switch {
			case constrained && !slices.Contains(possible, v.String()):
				f.refuse("state", l.key, "", "%q is no value of %s.%s; it has %s", v.String(), t.name, name, strings.Join(possible, ", "))
				bad = true
			default:
				if why := i.impossible(ctx, q, c, v); why != "" {
					f.refuse("state", l.key, "", "%s", why)
					bad = true
				}
			}
		}
	}
	if bad {
		return nil
	}
	declared := append(slices.Clone(terminal), live...)
	if constrained && len(live) > 0 {
		for _, p := range possible {
			if !slices.ContainsFunc(declared, func(v policy.Value) bool { return v.String() == p }) {
				f.refuse("state", key+".live", "", "state %q of %s.%s is in neither terminal nor live", p, t.name, name)
				bad = true
			}
		}
	}
	if !bad {
		words := "no constraint lists its values, so a wrong word cannot be told from one that never occurs"
		if constrained {
			words = fmt.Sprintf("%d of its %d values are terminal, the others protect", len(terminal), len(possible))
		}
		f.ok("state", key+".terminal", "%s.%s: %s", t.name, name, words)
	}
	if !constrained {
		return i.checkSeen(ctx, q, t, c, key, terminal, live)
	}
	return nil
}

// impossible says why a value is none of the column's type, "" if it is. The server's own input function is asked, inside
// a savepoint, since it raises an error.
func (i *Inspection) impossible(ctx context.Context, q query, c column, v policy.Value) string {
	if v.IsNull() {
		return ""
	}
	if err := trial(ctx, q, "SELECT "+typed(v, c)); err != nil {
		return fmt.Sprintf("%q is no value of column %s (%s)", v.String(), c.name, c.typname)
	}
	return ""
}

// checksSQL lists the CHECK constraints that are about this column alone.
const checksSQL = `SELECT pg_get_expr(conbin, conrelid) FROM pg_constraint WHERE conrelid = $1::oid AND contype = 'c' AND convalidated AND conkey = ARRAY[$2::int2]`

var quotedWord = regexp.MustCompile(`'((?:[^']|'')*)'`)

// possibleValues lists what the column can contain, where an enum or a CHECK on it alone says so.
func possibleValues(ctx context.Context, q query, t *table, c column) (values []string, constrained bool, err error) {
	if len(c.enum) > 0 {
		return c.enum, true, nil
	}
	exprs, err := all(ctx, q, checksSQL, scanText, t.oid, c.num)
	if err != nil || len(exprs) == 0 {
		return nil, false, err
	}
	// A CHECK names its values as literals. Which of them it lets pass is asked of the server, in the CHECK's own words.
	words := map[string]bool{}
	for _, e := range exprs {
		for _, m := range quotedWord.FindAllStringSubmatch(e, -1) {
			words[strings.ReplaceAll(m[1], "''", "'")] = true
		}
		for _, m := range numberWord.FindAllString(e, -1) {
			words[m] = true
		}
	}
	for w := range words {
		sql := fmt.Sprintf("SELECT (%s) IS TRUE FROM (SELECT %s AS %s) x", strings.Join(exprs, ") AND ("), typed(policy.Text(w), c), ident(c.name))
		sp, err := q.tx.Begin(ctx)
		if err != nil {
			return nil, false, err
		}
		var lets bool
		err = sp.QueryRow(ctx, sql, q.mode).Scan(&lets)
		_ = sp.Rollback(ctx)
		if err == nil && lets {
			values = append(values, w)
		}
	}
	slices.Sort(values)
	// A CHECK that lets an invented word pass is no list of values.
	invented := fmt.Sprintf("SELECT (%s) IS NOT FALSE FROM (SELECT %s AS %s) x", strings.Join(exprs, ") AND ("), typed(policy.Text("987654321"), c), ident(c.name))
	sp, err := q.tx.Begin(ctx)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = sp.Rollback(ctx) }()
	var open bool
	if err := sp.QueryRow(ctx, invented, q.mode).Scan(&open); err != nil || open {
		return nil, false, nil
	}
	return values, len(values) > 0, nil
}

var numberWord = regexp.MustCompile(`\b\d+\b`)

// seenSample bounds the look at states that occur: the oldest rows, through whatever serves the age.
const seenSample = 10_000

// checkSeen looks at the states that occur in a sample, where no constraint lists them: a terminal state that never
// occurs may be a wrong word, and one in neither list is kept for ever. Both are warnings.
func (i *Inspection) checkSeen(ctx context.Context, q query, t *table, c column, key string, terminal, live []policy.Value) error {
	f := &i.findings
	if !t.canSelect && !c.canSelect {
		return nil
	}
	sql := fmt.Sprintf("SELECT DISTINCT x.v FROM (SELECT %s::text AS v FROM ONLY %s LIMIT %d) x WHERE x.v IS NOT NULL ORDER BY 1 LIMIT 50", ident(c.name), tableName(t.name), seenSample)
	sp, err := q.tx.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = sp.Rollback(ctx) }()
	// The first rows of a heap that was swept and not vacuumed can lie far apart, and what row security hides is an error:
	// a look that does not come to its end is no finding.
	if _, err := sp.Exec(ctx, "SELECT set_config('statement_timeout', '1s', true)", q.mode); err != nil {
		return err
	}
	rows, err := sp.Query(ctx, sql, q.mode)
	if err != nil {
		return nil
	}
	seen, err := pgx.CollectRows(rows, scanText)
	if err != nil || len(seen) == 0 {
		return nil
	}
	has := func(vs []policy.Value, w string) bool {
		return slices.ContainsFunc(vs, func(v policy.Value) bool { return v.String() == w })
	}
	var absent, unknown []string
	for _, v := range terminal {
		if !slices.Contains(seen, v.String()) {
			absent = append(absent, v.String())
		}
	}
	for _, w := range seen {
		if !has(terminal, w) && !has(live, w) {
			unknown = append(unknown, w)
		}
	}
	if len(absent) > 0 {
		f.warn("state", key+".terminal", "", "%q does not occur among the first %d rows of %s.%s, which has %q", absent, seenSample, t.name, c.name, seen)
	}
	if len(unknown) > 0 && len(live) > 0 {
		// A sample is no ground to refuse on: the same sweep would run one night and not the next. Such rows are kept and counted.
		f.warn("state", key+".live", "", "%q occurs in %s.%s and is in neither terminal nor live; such rows are kept", unknown, t.name, c.name)
	}
	return nil
}
