package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prunectl/prunectl/policy"
)

// Inspection is what the catalog says about a sweep: the checks, and the arms if none refused.
type Inspection struct {
	Sweep  policy.Sweep // with its defaults
	Checks []Check
	Index  string // the index that serves, "" if none does; where the parts of the sweep have their own, each, with ", " between

	role     string // that would sweep
	target   target
	arms     []served
	expiries []string // generated columns that are the age and the own window added up
	findings findings
}

// Options are choices of a run that a policy does not make.
type Options struct {
	OneSweeper bool // a try-lock in each batch keeps other sweepers of the same sweep out; they report Busy
}

// Refused lists the checks that refuse the sweep; none means that it may run.
func (i *Inspection) Refused() []Check {
	return slices.DeleteFunc(slices.Clone(i.Checks), func(c Check) bool { return c.Result != Refused })
}

// Arms returns the arms of the sweep, to be run in this order, or a [*RefusedError].
func (i *Inspection) Arms(db *DB, o Options) ([]*Arm, error) {
	if r := i.Refused(); len(r) > 0 {
		return nil, &RefusedError{Sweep: i.Sweep.Name, Checks: r}
	}
	var arms []*Arm
	for _, s := range i.arms {
		t := i.target
		t.gate = o.OneSweeper
		t.serve(s)
		arms = append(arms, &Arm{target: t, db: db})
	}
	return arms, nil
}

// Open inspects the sweep and returns its arms, or a [*RefusedError] that says all that is wrong.
func Open(ctx context.Context, db *DB, s policy.Sweep, o Options) ([]*Arm, error) {
	i, err := Inspect(ctx, db, s)
	if err != nil {
		return nil, err
	}
	return i.Arms(db, o)
}

// Inspect reads the catalog in one read-only transaction and checks the sweep against it. What the catalog contradicts is
// in the checks; the error is for a catalog that cannot be read, or a policy that is wrong by itself.
func Inspect(ctx context.Context, db *DB, s policy.Sweep) (*Inspection, error) {
	if ps := s.Problems(); len(ps) > 0 {
		return nil, fmt.Errorf("sweep %s: %s", s.Name, ps[0])
	}
	i := &Inspection{Sweep: s.WithDefaults()}
	i.target.sweep = i.Sweep
	// The catalog's functions wait for a table that is locked as a whole; not for longer than a batch would.
	bounds := fmt.Sprintf("SELECT set_config('lock_timeout', '%s', true), set_config('statement_timeout', '%s', true)", millis(i.Sweep.Timeouts.Lock), millis(i.Sweep.Timeouts.Statement))
	if err := db.read(ctx, bounds, i.inspect); err != nil {
		return nil, fmt.Errorf("inspect sweep %s: %w", s.Name, err)
	}
	i.Checks = i.findings.checks
	var names []string
	for _, s := range i.arms {
		if !slices.Contains(names, s.index.name) {
			names = append(names, s.index.name)
		}
	}
	i.Index = strings.Join(names, ", ")
	return i, nil
}

// inspect goes from what everything else stands on to the details, and on as far as it can, so that all that is wrong is
// said at once.
func (i *Inspection) inspect(ctx context.Context, q query) error {
	f, s := &i.findings, &i.Sweep
	if err := q.row(ctx, "SELECT current_user::text").Scan(&i.role); err != nil {
		return err
	}
	t, err := readTable(ctx, q, s.Table)
	if err != nil {
		return err
	}
	if t == nil {
		f.refuse("kind", "table", "", "table %s does not exist", s.Table)
		return nil
	}
	i.target.table = t
	f.checkKind(t, "table", "table")
	var owner *table
	if g := s.Guard.Owner; g != nil {
		if owner, err = readTable(ctx, q, g.Table); err != nil {
			return err
		}
		if owner == nil {
			f.refuse("kind", "guard.owner.table", "", "owner table %s does not exist", g.Table)
		} else {
			f.checkKind(owner, "guard.owner.table", "owner table")
			i.target.owner = owner
		}
	}
	if err := i.readChildren(ctx, q); err != nil {
		return err
	}
	if f.refused("kind") {
		return nil
	}
	i.checkColumns()
	i.checkRowColumns()
	i.checkRights()
	if err := i.checkServer(ctx, q); err != nil {
		return err
	}
	if f.refused("column") {
		return nil
	}
	i.checkAge()
	if err := i.checkStates(ctx, q); err != nil {
		return err
	}
	i.checkOwnerKey()
	if i.checkKeys() {
		if err := i.checkReferences(ctx, q); err != nil {
			return err
		}
	}
	if err := i.checkDependents(ctx, q); err != nil {
		return err
	}
	i.checkIdentity()
	if f.refused("age") {
		return nil
	}
	return i.checkIndex(ctx, q)
}

// checkColumns looks for every column that the sweep names.
func (i *Inspection) checkColumns() {
	f, s, t := &i.findings, &i.Sweep, i.target.table
	missing := func(in *table, key, name string) {
		if _, ok := in.column(name); !ok {
			f.refuse("column", key, "", "%s has no column %q; it has %s", in.name, name, columnsLike(in))
		}
	}
	missing(t, s.AgeKey(), s.Age)
	for _, m := range s.Only {
		missing(t, "only."+m.Column, m.Column)
	}
	if g := s.Guard.State; g != nil {
		missing(t, "guard.state", g.Column)
	}
	if g := s.Guard.Owner; g != nil && i.target.owner != nil {
		missing(i.target.owner, "guard.owner.state", g.Column)
		for _, k := range g.Key {
			missing(t, "guard.owner.key", k.Target)
			missing(i.target.owner, "guard.owner.key", k.Owner)
		}
	}
	if s.Own != nil {
		missing(t, "row_window.column", s.Own.Column)
	}
	if s.Guard.Hold != "" {
		missing(t, "guard.hold", s.Guard.Hold)
	}
	for _, c := range i.references() {
		for _, k := range c.key {
			missing(i.parentTable(c), c.path+".key", k.Parent)
			missing(c.table, c.path+".key", k.Child)
		}
	}
	if o := i.target.owed; o != nil && o.state.Column != "" {
		missing(o.table, "guard.owed.state", o.state.Column)
	}
}

// checkRights names every right that is missing at once, with the grants that would give them.
func (i *Inspection) checkRights() {
	f, s, t, o := &i.findings, &i.Sweep, i.target.table, i.target.owner
	role := ident(i.role)
	var missing, grants []string
	need := func(have bool, what, grant string) {
		if !have && !slices.Contains(missing, what) { // both tables may lie in one schema
			missing = append(missing, what)
			grants = append(grants, "GRANT "+grant+" TO "+role+";")
		}
	}
	need(t.canUse, "USAGE on schema "+t.name.Schema, "USAGE ON SCHEMA "+ident(t.name.Schema))
	need(t.canSelect, "SELECT on "+t.name.String(), "SELECT ON "+tableName(t.name))
	need(t.canDelete, "DELETE on "+t.name.String(), "DELETE ON "+tableName(t.name))
	if g := s.Guard.Owner; g != nil && o != nil {
		var cols, quoted []string
		for _, name := range append(ownerColumns(g), g.Column) {
			if c, ok := o.column(name); ok && !c.canSelect && !slices.Contains(cols, name) {
				cols, quoted = append(cols, name), append(quoted, ident(name))
			}
		}
		need(o.canUse, "USAGE on schema "+o.name.Schema, "USAGE ON SCHEMA "+ident(o.name.Schema))
		need(len(cols) == 0, fmt.Sprintf("SELECT (%s) on %s", strings.Join(cols, ", "), o.name), fmt.Sprintf("SELECT (%s) ON %s", strings.Join(quoted, ", "), tableName(o.name)))
		need(o.canUpdate || g.Final, fmt.Sprintf("UPDATE on one column of %s, to lock it FOR SHARE", o.name), fmt.Sprintf("UPDATE (%s) ON %s", ident(g.Column), tableName(o.name)))
		if g.Final {
			f.ok("owner lock", "guard.owner", "%s is not locked: the policy says that its terminal states are final", o.name)
		} else if o.canUpdate {
			f.ok("owner lock", "guard.owner", "FOR SHARE on %s needs UPDATE on one column; granted", o.name)
		}
	}
	for _, c := range i.target.children {
		need(c.table.canUse, "USAGE on schema "+c.table.name.Schema, "USAGE ON SCHEMA "+ident(c.table.name.Schema))
		need(c.table.canSelect, "SELECT on "+c.table.name.String(), "SELECT ON "+tableName(c.table.name))
		need(c.table.canDelete, "DELETE on "+c.table.name.String(), "DELETE ON "+tableName(c.table.name))
	}
	if c := i.target.owed; c != nil {
		var cols, quoted []string
		for _, name := range append(c.childColumns(), c.state.Column) {
			if col, ok := c.table.column(name); ok && !col.canSelect && !slices.Contains(cols, name) {
				cols, quoted = append(cols, name), append(quoted, ident(name))
			}
		}
		need(c.table.canUse, "USAGE on schema "+c.table.name.Schema, "USAGE ON SCHEMA "+ident(c.table.name.Schema))
		// where its rows are removed too, the right on the whole table says it already
		removed := slices.ContainsFunc(i.removes(), func(t *table) bool { return t.oid == c.table.oid })
		need(len(cols) == 0 || removed, fmt.Sprintf("SELECT (%s) on %s", strings.Join(cols, ", "), c.table.name), fmt.Sprintf("SELECT (%s) ON %s", strings.Join(quoted, ", "), tableName(c.table.name)))
	}
	parents := s.Guard.Owed != nil || len(s.Children) > 0
	if parents {
		need(t.canUpdate, fmt.Sprintf("UPDATE on one column of %s, to lock a row FOR UPDATE before its children go", t.name), fmt.Sprintf("UPDATE (%s) ON %s", ident(harmless(t, decisive(s))), tableName(t.name)))
	}
	if len(missing) > 0 {
		f.refuse("rights", "", strings.Join(grants, " "), "missing: %s", strings.Join(missing, "; "))
	} else {
		f.ok("rights", "", "all that the sweep needs is granted")
	}
	if !t.canUpdate && !parents {
		f.warn("rights", "", fmt.Sprintf("GRANT UPDATE (%s) ON %s TO %s;", ident(harmless(t, decisive(s))), tableName(t.name), role),
			"without UPDATE on one column of %s a locked row cannot be skipped; its batch is halved until it stands alone", t.name)
	}
	i.checkRowSecurity()
}

// harmless is the column on which UPDATE gives away least: one that no index and no decision is about, if there is one.
func harmless(t *table, decisive []string) string {
	for n := len(t.columns) - 1; n >= 0; n-- {
		name := t.columns[n].name
		indexed := slices.ContainsFunc(t.indexes, func(x index) bool { return slices.Contains(x.columns, name) })
		if !indexed && t.columns[n].generated == "" && !slices.Contains(decisive, name) {
			return name
		}
	}
	return t.columns[len(t.columns)-1].name
}

// decisive are the columns of the target that a decision is about.
func decisive(s *policy.Sweep) []string {
	cols := []string{s.Age, s.Guard.Hold}
	if s.Own != nil {
		cols = append(cols, s.Own.Column)
	}
	for _, m := range s.Only {
		cols = append(cols, m.Column)
	}
	if g := s.Guard.State; g != nil {
		cols = append(cols, g.Column)
	}
	if g := s.Guard.Owner; g != nil {
		for _, k := range g.Key {
			cols = append(cols, k.Target)
		}
	}
	if g := s.Guard.Owed; g != nil {
		for _, k := range g.Key {
			cols = append(cols, k.Parent)
		}
	}
	for _, c := range s.Children {
		for _, k := range c.Key {
			cols = append(cols, k.Parent)
		}
	}
	return cols
}

func ownerColumns(g *policy.OwnerGuard) []string {
	var cols []string
	for _, k := range g.Key {
		cols = append(cols, k.Owner)
	}
	return cols
}

// checkRowSecurity refuses policies that would hide rows, unless the sweep says itself how it wants to see them.
func (i *Inspection) checkRowSecurity() {
	f := &i.findings
	chosen := slices.ContainsFunc(i.Sweep.Set, func(s policy.Setting) bool { return strings.EqualFold(s.Name, "row_security") })
	tables := append(i.removes(), i.target.owner)
	if o := i.target.owed; o != nil && !slices.ContainsFunc(tables, func(t *table) bool { return t != nil && t.oid == o.table.oid }) {
		tables = append(tables, o.table)
	}
	for _, t := range tables {
		switch {
		case t == nil || !t.rlsActive:
		case chosen:
			f.warn("rls", "set", "", "row security filters %s; only the rows that its policies show are swept", t.name)
		default:
			f.refuse("rls", "", `sweep with a role that has BYPASSRLS, or choose what it sees with set: {row_security: "on", ...}`,
				"row security would hide rows of %s from this role", t.name)
		}
	}
}

// checkAge refuses a column that holds no instants, or that contradicts the guard.
func (i *Inspection) checkAge() {
	f, s := &i.findings, &i.Sweep
	key := s.AgeKey()
	c, _ := i.target.table.column(s.Age)
	const timestamptzOID, timestampOID, dateOID = 1184, 1114, 1082
	switch c.base {
	case timestamptzOID:
	case timestampOID:
		f.refuse("age", key, "", "column %s is %s; as: wall is planned, not in this version", c.name, c.typname)
		return
	case dateOID, 20, 23, 1700, 701, 700, 2950:
		f.refuse("age", key, "", "column %s is %s; ages that are no timestamptz are planned, not in this version", c.name, c.typname)
		return
	default:
		f.refuse("age", key, "name a timestamptz column", "column %s is %s, which is no instant", c.name, c.typname)
		return
	}
	switch {
	case s.Guard.Ended && c.notNull:
		f.refuse("age", "guard.ended", "", "guard.ended says %s is null while a row is live, but the column is NOT NULL", c.name)
	case !s.Expires && !s.Guard.Ended && s.Guard.State == nil && !c.notNull:
		f.warn("age", key, "", "%s can be null; such rows are kept and counted as undated", c.name)
	default:
		f.ok("age", key, "%s is timestamptz", c.name)
	}
}

// checkOwnerKey refuses a key that could find two owners of one row, one of them live, or that compares unlike values.
func (i *Inspection) checkOwnerKey() {
	f, t, o, g := &i.findings, i.target.table, i.target.owner, i.Sweep.Guard.Owner
	if g == nil || o == nil {
		return
	}
	for _, k := range g.Key {
		tc, _ := t.column(k.Target)
		oc, _ := o.column(k.Owner)
		if tc.base != oc.base || tc.collation != oc.collation {
			f.refuse("column", "guard.owner.key", "", "%s.%s is %s and %s.%s is %s; a key is compared in one type and collation", t.name, k.Target, tc.typname, o.name, k.Owner, oc.typname)
		}
	}
	want := ownerColumns(g)
	slices.Sort(want)
	for _, x := range o.indexes {
		have := slices.Clone(x.columns)
		slices.Sort(have)
		if x.unique && x.valid && x.immediate && x.predicate == "" && slices.Equal(have, want) {
			f.ok("column", "guard.owner.key", "the key is unique by %s", x.name)
			return
		}
	}
	f.refuse("column", "guard.owner.key", "", "(%s) is no primary key or unique index of %s; two owners of one key, one of them live, would let rows go", strings.Join(ownerColumns(g), ", "), o.name)
}

// checkIdentity refuses a table whose deletes the server would refuse for want of a replica identity.
func (i *Inspection) checkIdentity() {
	for _, t := range i.removes() {
		if len(t.published) == 0 || t.identity == "f" || t.hasKey && t.identity != "n" {
			continue
		}
		i.findings.refuse("replica identity", "", fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY FULL;", tableName(t.name)),
			"%s is in publication %s, which publishes deletes, and has no replica identity", t.name, strings.Join(t.published, ", "))
	}
}
