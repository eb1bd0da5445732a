package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// Plan is what a sweep would do, counted without touching a row: by the conditions of the batch itself, over the oldest
// rows up to a bound.
type Plan struct {
	Examined   int
	Due        int
	Held       int // meaningless where the arm does not count held rows
	Orphan     int
	Outside    int
	InVain     int  // examined, and kept by the longer window of their state
	AtLeast    bool // the count stopped at the bound: there may be more of each
	OldestDue  *time.Time
	OldestHeld *time.Time
}

// Plan counts the arm's rows before the cutoff, the oldest first, up to max of them, in a read-only transaction.
func (a *Arm) Plan(ctx context.Context, c policy.Cutoff, max int) (Plan, error) {
	var p Plan
	if c.IsZero() {
		return p, nil
	}
	err := a.look(ctx, func(ctx context.Context, q query) error {
		st := a.planSQL()
		err := q.row(ctx, st.sql, anys(st.with(a.lookArgs(c, max)).args)...).Scan(&p.Examined, &p.Outside, &p.Held, &p.Orphan, &p.Due, &p.OldestDue, &p.OldestHeld)
		p.InVain = p.Examined - p.Outside - p.Held - p.Orphan - p.Due
		p.AtLeast = p.Examined >= max
		return err
	})
	if err != nil {
		return Plan{}, fmt.Errorf("plan %s: %w", a.arm.Name, err)
	}
	return p, nil
}

func (a *Arm) look(ctx context.Context, f func(context.Context, query) error) error {
	return a.db.read(ctx, a.readSettingsSQL(), f)
}

func (a *Arm) lookArgs(c policy.Cutoff, max int) map[string]string {
	return map[string]string{argCutoff: timestamptz(c.Time().UnixMicro()), argAfter: timestamptz(a.sweep.Since.UnixMicro()), argLimit: strconv.Itoa(max)}
}

func anys(args []string) []any {
	as := make([]any, len(args))
	for i, a := range args {
		as[i] = a
	}
	return as
}

// oldest takes the first rows of the range, as many as the look may read.
func (r *renderer) oldestRows() {
	age := ident(r.sweep.Age)
	r.cte("seen", "the oldest rows before the cutoff, up to a bound")
	cols := []string{"e." + age}
	for _, c := range r.rowColumns() {
		cols = append(cols, "e."+ident(c))
	}
	r.line("  SELECT %s FROM ONLY %s e", strings.Join(cols, ", "), tableName(r.table.name))
	r.line("   WHERE e.%s < %s AND e.%s >= %s", age, r.arg(argCutoff, "timestamptz"), age, r.arg(argAfter, "timestamptz"))
	r.equalities("e")
	r.line("   ORDER BY e.%s LIMIT %s", age, r.arg(argLimit, "int"))
}

func oldestIf(age, cond string) string {
	if cond == "false" {
		return "NULL::timestamptz"
	}
	return "min(e." + age + ")" + filter(cond)
}

func (t *target) planSQL() statement {
	r := &renderer{target: t, shape: shape{look: true}}
	r.oldestRows()
	if r.arm.Owner != nil {
		r.owners()
		r.b.WriteString(")\n")
		r.line("SELECT coalesce(sum(o.n), 0)::bigint, coalesce(sum(o.outside), 0)::bigint")
		r.line("     , (coalesce(sum(o.held), 0) + coalesce(sum(o.candidates) FILTER (WHERE o.got IS NULL AND NOT o.ok), 0))::bigint")
		r.line("     , coalesce(sum(o.candidates) FILTER (WHERE o.got IS NULL AND o.ok IS NULL), 0)::bigint")
		r.line("     , coalesce(sum(o.candidates) FILTER (WHERE o.got), 0)::bigint")
		r.line("     , min(o.oldest) FILTER (WHERE o.got), least(min(o.oldest_held), min(o.oldest) FILTER (WHERE o.got IS NULL AND NOT o.ok))")
		r.line("  FROM owners o")
		return statement{r.b.String(), r.args}
	}
	outside, held, candidate := r.classes("e")
	age := ident(r.sweep.Age)
	r.b.WriteString(")\n")
	r.line("SELECT count(*), %s, %s, 0, %s, %s, %s", countIf(outside), countIf(held), countIf(candidate), oldestIf(age, candidate), oldestIf(age, held))
	r.line("  FROM seen e")
	return statement{r.b.String(), r.args}
}

// heldSQL groups what is kept by the reason that keeps it.
func (t *target) heldSQL() statement {
	r := &renderer{target: t, shape: shape{look: true}}
	r.oldestRows()
	var parts []string
	age := ident(r.sweep.Age)
	_, held, _ := r.classes("e")
	if r.arm.State != nil {
		parts = append(parts, fmt.Sprintf("SELECT 'state' AS reason, e.%s::text AS value, count(*) AS n, NULL::bigint AS owners, min(e.%s) AS oldest FROM seen e WHERE %s GROUP BY 2",
			ident(r.arm.State.Column), age, held))
	}
	if o := r.arm.Owner; o != nil {
		r.owners()
		var on, null []string
		for i, k := range o.Key {
			on = append(on, fmt.Sprintf("r.%s = o.k%d", ident(k.Owner), i))
			null = append(null, fmt.Sprintf("o.k%d IS NULL", i))
		}
		parts = append(parts, fmt.Sprintf(`SELECT CASE WHEN o.ok IS NOT NULL THEN 'owner' WHEN %s THEN 'ownerless' ELSE 'orphan' END, x.state, sum(o.candidates)::bigint, CASE WHEN bool_and(o.ok IS NOT NULL) THEN count(*) END, min(o.oldest)
  FROM owners o LEFT JOIN LATERAL (SELECT r.%s::text AS state FROM ONLY %s r WHERE %s OFFSET 0) x ON true
 WHERE o.got IS NULL AND o.candidates > 0 GROUP BY 1, 2`, strings.Join(null, " OR "), ident(o.Column), tableName(r.owner.name), strings.Join(on, " AND ")))
	}
	r.b.WriteString(")\n")
	r.line("%s", strings.Join(parts, "\nUNION ALL\n"))
	r.line("ORDER BY 3 DESC, 1, 2")
	return statement{r.b.String(), r.args}
}

// HeldBy breaks down what is kept among the oldest rows, up to max of them; see [pruner.Surveyor]. A state in neither
// list of the guard is reported as unknown, where the guard has both.
func (a *Arm) HeldBy(ctx context.Context, c policy.Cutoff, max int) ([]pruner.HeldBy, error) {
	if c.IsZero() || !a.arm.CountsHeld() {
		return nil, nil
	}
	var held []pruner.HeldBy
	err := a.look(ctx, func(ctx context.Context, q query) (err error) {
		st := a.heldSQL()
		held, err = all(ctx, q, st.sql, func(row pgx.CollectableRow) (h pruner.HeldBy, err error) {
			var value *string
			err = row.Scan(&h.Reason, &value, &h.Rows, &h.Owners, &h.Oldest)
			if value != nil {
				h.Value = *value
			}
			if h.Reason == "state" && a.unknownState(h.Value) {
				h.Reason = "unknown_state"
			}
			return h, err
		}, anys(st.with(a.lookArgs(c, max)).args)...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("held rows of %s: %w", a.arm.Name, err)
	}
	return held, nil
}

func (a *Arm) unknownState(value string) bool {
	g := a.sweep.Guard.State
	return g != nil && len(g.Live) > 0 && !slices.ContainsFunc(g.Live, func(v policy.Value) bool { return v.String() == value })
}

// Undated counts the rows of the arm without a usable age, up to max read; see [pruner.Surveyor].
func (a *Arm) Undated(ctx context.Context, max int) (*int, error) {
	none := 0
	if a.sweep.Guard.Ended {
		return &none, nil // a row without an age is a live one
	}
	age := a.col(a.sweep.Age)
	if !age.notNull && slices.Contains(a.index.shape(a.table).Where, age.name) {
		return nil, nil // the index leaves out the nulls, and without it it would be a scan
	}
	total := 0
	err := a.look(ctx, func(ctx context.Context, q query) error {
		for _, cond := range []string{"IS NULL", "< " + literal(timestamptz(a.sweep.Since.UnixMicro())) + "::timestamptz"} {
			if age.notNull && cond == "IS NULL" {
				continue
			}
			st := a.undatedSQL(cond, max)
			var read, n int
			if err := q.row(ctx, st.sql, anys(st.args)...).Scan(&read, &n); err != nil {
				return err
			}
			if read >= max {
				total = max
				return nil
			}
			total += n
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("undated rows of %s: %w", a.arm.Name, err)
	case total >= max:
		return nil, nil
	}
	return &total, nil
}

func (t *target) undatedSQL(cond string, max int) statement {
	r := &renderer{target: t, shape: shape{look: true}}
	cols := []string{"e." + ident(r.sweep.Age)}
	for _, c := range r.rowColumns() {
		cols = append(cols, "e."+ident(c))
	}
	terminal := r.inside("e")
	if st := r.arm.State; st != nil {
		var all []policy.Value
		for _, g := range st.Groups {
			all = append(all, g.States...)
		}
		terminal += " AND " + in("e."+ident(st.Column), all, r.col(st.Column)) // any other is a live row, which needs no age
	}
	r.line("SELECT count(*), count(*) FILTER (WHERE %s)", terminal)
	r.line("  FROM (SELECT %s FROM ONLY %s e", strings.Join(cols, ", "), tableName(r.table.name))
	r.line("         WHERE e.%s %s", ident(r.sweep.Age), cond)
	r.equalities("e")
	r.line("         LIMIT %d) e", max)
	return statement{r.b.String(), r.args}
}
