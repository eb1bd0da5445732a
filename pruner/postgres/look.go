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
	Unusable   int  // past the floor, and their own window is nonsense
	Raised     int  // whose own window is below the floor; they are in another count too
	InVain     int  // examined, and kept by the longer window of their state or their own, or of another part of the sweep
	AtLeast    bool // the count stopped at the bound: there may be more of each
	OldestDue  *time.Time
	OldestHeld *time.Time
	Overdue    time.Duration // how far the due row that is longest past its window is past it; 0: nothing is due
}

// Plan counts the arm's rows before the cutoff, the oldest first, up to max of them, in a read-only transaction.
func (a *Arm) Plan(ctx context.Context, c policy.Cutoff, max int) (Plan, error) {
	var p Plan
	if c.IsZero() {
		return p, nil
	}
	err := a.look(ctx, func(ctx context.Context, q query) error {
		st := a.planSQL()
		var late float64
		err := q.row(ctx, st.sql, anys(st.with(a.lookArgs(c, max)).args)...).Scan(&p.Examined, &p.Outside, &p.Held, &p.Orphan, &p.Due, &p.OldestDue, &p.OldestHeld, &p.Unusable, &p.Raised, &late)
		p.Overdue = time.Duration(late * float64(time.Second)).Round(time.Microsecond)
		p.InVain = p.Examined - p.Outside - p.Held - p.Orphan - p.Due - p.Unusable
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

// oldestRows takes the first rows of the range, as many as the look may read, and asks for each that may go who is owed by
// it: owes for the smallest state too.
func (r *renderer) oldestRows(owes bool) {
	at := r.at("e")
	name := "seen"
	if r.arm.Owed != nil {
		name = "found"
	}
	r.cte(name, "the oldest rows before the cutoff, up to a bound")
	cols := []string{"e." + ident(r.sweep.Age)}
	for _, c := range r.rowColumns() {
		cols = append(cols, "e."+ident(c))
	}
	if o := r.arm.Owed; o != nil {
		for _, k := range o.Key {
			if c := "e." + ident(k.Parent); !slices.Contains(cols, c) {
				cols = append(cols, c)
			}
		}
	}
	r.line("  SELECT %s FROM ONLY %s e", strings.Join(cols, ", "), tableName(r.table.name))
	r.line("   WHERE %s < %s AND %s >= %s", at, r.arg(argCutoff, "timestamptz"), at, r.arg(argAfter, "timestamptz"))
	r.equalities("e")
	r.line("   ORDER BY %s LIMIT %s", at, r.arg(argLimit, "int"))
	if r.arm.Owed == nil {
		return
	}
	// As a condition inside of the probe it keeps the probe from being made; as one of the join it would not.
	probe := strings.TrimPrefix(r.owedProbe("e"), "SELECT")
	if c := r.classes("e").candidate; c != "true" {
		probe += " AND " + c
	}
	r.cte("seen", "and whether anything protects those that may go")
	columns := "w.owed AS " + r.ours("owed")
	if owes {
		columns += ", w.owes AS " + r.ours("owes")
	}
	r.line("  SELECT e.*, %s FROM found e", columns)
	switch column := r.arm.Owed.Column; {
	case !owes:
		r.line("    LEFT JOIN LATERAL (SELECT true AS owed%s LIMIT 1) w ON true", probe)
	case column == "":
		r.line("    LEFT JOIN LATERAL (SELECT true AS owed, NULL::text AS owes%s LIMIT 1) w ON true", probe)
	default:
		r.line("    LEFT JOIN LATERAL (SELECT true AS owed, min(x.state) AS owes  -- the smallest of the first few")
		r.line(`                         FROM (SELECT o.%s::text COLLATE "C" AS state%s LIMIT %d) x HAVING count(*) > 0) w ON true`, ident(column), probe, owesSample)
	}
}

// owesSample bounds how many of the rows that protect one row are read to name their smallest state.
const owesSample = 1000

// known are the classes of a row once all that was asked of it is known: in a look, whether a row that refers to it
// protects it.
func (r *renderer) known(alias string) classes {
	c := r.classes(alias)
	if r.look && r.arm.Owed != nil {
		c.held = or(c.held, and(c.candidate, alias+"."+r.ours("owed")+" IS NOT NULL"))
		c.candidate = and(c.candidate, alias+"."+r.ours("owed")+" IS NULL")
	}
	return c
}

func oldestIf(age, cond string) string {
	if cond == "false" {
		return "NULL::timestamptz"
	}
	return "min(e." + age + ")" + filter(cond)
}

// latest is by how many seconds the row that is longest past its own window is past it, among those of a condition.
func (r *renderer) latest(cond string) string {
	if cond == "false" {
		return "NULL::float8"
	}
	age, cutoff := "e."+ident(r.sweep.Age), r.arg(argCutoff, "timestamptz")
	late := cutoff + " - " + age
	if o := r.arm.Own; o != nil {
		seconds := func(n int64) string { return fmt.Sprintf("interval '%d seconds'", n) }
		late = fmt.Sprintf("%s + %s - greatest(%s, %s + %s)", cutoff, seconds(r.arm.Window.Seconds()), r.sum("e"), age, seconds(int64(o.Floor.Seconds())))
	} else if st := r.arm.State; st != nil {
		for _, g := range st.Groups {
			if g.Longer > 0 {
				late += fmt.Sprintf(" - CASE WHEN %s THEN interval '%d seconds' ELSE interval '0' END", in("e."+ident(st.Column), g.States, r.col(st.Column)), int64(g.Longer.Seconds()))
			}
		}
	}
	return "max(extract(epoch FROM " + late + "))" + filter(cond)
}

func (t *target) planSQL() statement {
	r := &renderer{target: t, shape: shape{look: true}}
	r.oldestRows(false)
	if r.arm.Owner != nil {
		r.owners()
		r.b.WriteString(")\n")
		r.line("SELECT coalesce(sum(o.n), 0)::bigint, coalesce(sum(o.outside), 0)::bigint")
		r.line("     , (coalesce(sum(o.held), 0) + coalesce(sum(o.candidates) FILTER (WHERE o.got IS NULL AND NOT o.ok), 0))::bigint")
		r.line("     , coalesce(sum(o.candidates) FILTER (WHERE o.got IS NULL AND o.ok IS NULL), 0)::bigint")
		r.line("     , coalesce(sum(o.candidates) FILTER (WHERE o.got), 0)::bigint")
		r.line("     , min(o.oldest) FILTER (WHERE o.got), least(min(o.oldest_held), min(o.oldest) FILTER (WHERE o.got IS NULL AND NOT o.ok))")
		if r.arm.Own != nil {
			r.line("     , coalesce(sum(o.unusable), 0)::bigint, coalesce(sum(o.raised), 0)::bigint")
		} else {
			r.line("     , 0, 0")
		}
		r.line("     , coalesce(max(o.late) FILTER (WHERE o.got), 0)::float8")
		r.line("  FROM owners o")
		return statement{r.b.String(), r.args}
	}
	c := r.known("e")
	age := ident(r.sweep.Age)
	r.b.WriteString(")\n")
	r.line("SELECT count(*), %s, %s, 0, %s, %s, %s, %s, %s", countIf(c.outside), countIf(c.held), countIf(c.candidate), oldestIf(age, c.candidate), oldestIf(age, c.held), countIf(c.unusable), countIf(c.raised))
	r.line("     , coalesce(%s, 0)::float8", r.latest(c.candidate))
	r.line("  FROM seen e")
	return statement{r.b.String(), r.args}
}

// heldSQL groups what is kept by the reason that keeps it.
func (t *target) heldSQL() statement {
	r := &renderer{target: t, shape: shape{look: true}}
	r.oldestRows(true)
	var parts []string
	age := ident(r.sweep.Age)
	c := r.classes("e")
	reason := func(name, value, cond string) {
		parts = append(parts, fmt.Sprintf("SELECT '%s' AS reason, %s AS value, count(*) AS n, NULL::bigint AS owners, min(e.%s) AS oldest FROM seen e WHERE %s GROUP BY 2", name, value, age, cond))
	}
	if r.arm.State != nil {
		reason("state", "e."+ident(r.arm.State.Column)+"::text", c.byState)
	}
	if r.arm.Hold != "" {
		reason("hold", "NULL::text", c.byHold)
	}
	if r.arm.Owed != nil {
		reason("owed", "e."+r.ours("owes"), and(c.candidate, "e."+r.ours("owed")))
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

// Undated counts the rows of the arm without a usable age, up to max read; see [pruner.Surveyor]. Through an index on
// expiries it finds an age before since only where the expiry is before it too.
func (a *Arm) Undated(ctx context.Context, max int) (*int, error) {
	none := 0
	if a.sweep.Guard.Ended {
		return &none, nil // a row without an age is a live one
	}
	age := a.col(a.sweep.Age)
	nulls, x := !age.notNull, a.index
	if a.sweep.Expires { // a row without an expiry is kept for ever, and not undated
		nulls, x.predicate = false, strings.NewReplacer(age.name+" IS NOT NULL", "", ident(age.name)+" IS NOT NULL", "").Replace(x.predicate)
	}
	if where := x.shape(a.table).Where; !age.notNull && (slices.Contains(where, age.name) || a.expiry != "" && slices.Contains(where, a.expiry)) {
		return nil, nil // the index leaves out the nulls, and without it it would be a scan
	}
	total := 0
	err := a.look(ctx, func(ctx context.Context, q query) error {
		for _, null := range []bool{true, false} {
			if null && !nulls {
				continue
			}
			st := a.undatedSQL(null, max)
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

// undatedSQL counts the rows whose age is null, or before since.
func (t *target) undatedSQL(null bool, max int) statement {
	r := &renderer{target: t, shape: shape{look: true}}
	cond := "< " + r.since()
	if null {
		cond = "IS NULL"
	}
	cols := []string{"e." + ident(r.sweep.Age)}
	for _, c := range r.rowColumns() {
		cols = append(cols, "e."+ident(c))
	}
	counts := and(r.part("e"), r.inside("e"))
	if r.arm.Expiry {
		counts = and("e."+ident(r.sweep.Age)+" "+cond, counts) // a negative window makes an early expiry of any age
	}
	if st := r.arm.State; st != nil {
		var all []policy.Value
		for _, g := range st.Groups {
			all = append(all, g.States...)
		}
		counts += " AND " + in("e."+ident(st.Column), all, r.col(st.Column)) // any other is a live row, which needs no age
	}
	r.line("SELECT count(*), count(*) FILTER (WHERE %s)", counts)
	r.line("  FROM (SELECT %s FROM ONLY %s e", strings.Join(cols, ", "), tableName(r.table.name))
	r.line("         WHERE %s %s", r.at("e"), cond)
	r.equalities("e")
	r.line("         LIMIT %d) e", max)
	return statement{r.b.String(), r.args}
}
