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
	if o := i.target.owed; o != nil && o.state.Column != "" {
		if err := i.checkList(ctx, q, o.table, o.state.Column, "guard.owed", o.state.Terminal, nil); err != nil {
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
	possible, constrained, checks, err := possibleValues(ctx, q, t, c)
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
				why := i.impossible(ctx, q, c, v)
				if why == "" {
					lets, err := passes(ctx, q, checks, c, v)
					if err != nil {
						return err
					}
					if !lets {
						why = fmt.Sprintf("%q is no value of %s.%s, by its CHECK %s", v.String(), t.name, name, strings.Join(checks, " and "))
					}
				}
				if why != "" {
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

var (
	quotedWord = regexp.MustCompile(`'((?:[^']|'')*)'`)
	numberWord = regexp.MustCompile(`-?\b\d+\b`)
	castWord   = regexp.MustCompile(`::[\w". ]+(\([\d,]+\))?(\[\])?`)
	listWord   = regexp.MustCompile(`^(\b(ANY|ARRAY|OR)\b|[ ()\[\],=])*$`)
)

// isList reports whether a CHECK is nothing but a list of the values that the column may have. A range, a pattern or a
// length lets more pass than the words that it names.
func isList(expr string, c column) bool {
	for _, r := range []*regexp.Regexp{quotedWord, castWord, numberWord} {
		expr = r.ReplaceAllString(expr, "")
	}
	for _, name := range []string{ident(c.name), c.name} {
		expr = regexp.MustCompile(`(^|[ (])`+regexp.QuoteMeta(name)+`($|[ )])`).ReplaceAllString(expr, "$1$2")
	}
	return listWord.MatchString(expr)
}

// possibleValues lists what the column can contain, where an enum or a CHECK on it alone does. checks are the CHECKs on it
// alone, of whatever form.
func possibleValues(ctx context.Context, q query, t *table, c column) (values []string, listed bool, checks []string, err error) {
	if len(c.enum) > 0 {
		return c.enum, true, nil, nil
	}
	if checks, err = all(ctx, q, checksSQL, scanText, t.oid, c.num); err != nil {
		return nil, false, nil, err
	}
	words := map[string]bool{}
	for _, e := range checks {
		if !isList(e, c) {
			continue
		}
		listed = true
		for _, m := range quotedWord.FindAllStringSubmatch(e, -1) {
			words[strings.ReplaceAll(m[1], "''", "'")] = true
		}
		for _, m := range numberWord.FindAllString(quotedWord.ReplaceAllString(e, ""), -1) {
			words[m] = true
		}
	}
	for w := range words {
		lets, err := passes(ctx, q, checks, c, policy.Text(w))
		if err != nil {
			return nil, false, nil, err
		}
		if lets {
			values = append(values, w)
		}
	}
	slices.Sort(values)
	return values, listed, checks, nil
}

// passes asks the server, in the CHECKs' own words, whether they let a value pass. One that they cannot be asked about
// passes: whether it is a value of the column at all is another question.
func passes(ctx context.Context, q query, checks []string, c column, v policy.Value) (bool, error) {
	if len(checks) == 0 {
		return true, nil
	}
	sp, err := q.tx.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = sp.Rollback(ctx) }()
	var lets bool
	sql := fmt.Sprintf("SELECT ((%s)) IS NOT FALSE FROM (SELECT %s AS %s) x", strings.Join(checks, ") AND ("), typed(v, c), ident(c.name))
	if err := sp.QueryRow(ctx, sql, q.mode).Scan(&lets); err != nil {
		return true, nil
	}
	return lets, nil
}

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
