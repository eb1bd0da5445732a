package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// PurgeInspection is what the catalog says about a purge of one tenant.
type PurgeInspection struct {
	Purge  policy.Purge // with its defaults
	Tenant string       // as the tables have it: a uuid in the server's spelling
	Checks []Check      // Check.Key is a key of the purge: "tables.0.column", "tables.1.children.0.key", "exclude.public.audit", "tables"

	own      bool // other tables of tenants are no matter of it
	role     string
	steps    []*removal
	paths    []string // of the steps
	findings findings
}

// InspectPurge reads the catalog in one read-only transaction and checks the purge against it. What the catalog
// contradicts is in the checks. The error is a [*tenant.Error] where what was given names no tenant; any other is for a
// catalog that cannot be read, or a purge that is wrong by itself.
func InspectPurge(ctx context.Context, db *DB, p policy.Purge, of string) (*PurgeInspection, error) {
	return inspectPurge(ctx, db, &PurgeInspection{Purge: p, Tenant: of}, saysTenant(of))
}

// InspectOwnPurge is [InspectPurge] for a component that removes a tenant's rows from tables of its own: that the database
// has other tables with such a column, which the purge does not name, is no finding.
func InspectOwnPurge(ctx context.Context, db *DB, p policy.Purge, of string) (*PurgeInspection, error) {
	return inspectPurge(ctx, db, &PurgeInspection{Purge: p, Tenant: of, own: true}, saysTenant(of))
}

// CheckPurge makes all the checks of [InspectPurge] but those of a tenant's name. What it returns opens nothing: its Open
// is an error.
func CheckPurge(ctx context.Context, db *DB, p policy.Purge) (*PurgeInspection, error) {
	return inspectPurge(ctx, db, &PurgeInspection{Purge: p}, nil)
}

// inspectPurge fills the inspection. none is why what was given names no tenant.
func inspectPurge(ctx context.Context, db *DB, i *PurgeInspection, none error) (*PurgeInspection, error) {
	p := i.Purge
	if ps := p.Problems(); len(ps) > 0 {
		return nil, fmt.Errorf("purge %s: %s", p.Name, ps[0])
	}
	if none != nil {
		return nil, none
	}
	i.Purge = p.WithDefaults()
	// The catalog's functions wait for a table that is locked as a whole; not for longer than a batch would.
	bounds := fmt.Sprintf("SELECT set_config('lock_timeout', '%s', true), set_config('statement_timeout', '%s', true)", millis(i.Purge.Timeouts.Lock), millis(i.Purge.Timeouts.Statement))
	var no *tenant.Error
	if err := db.read(ctx, bounds, i.inspect); errors.As(err, &no) {
		return nil, no
	} else if err != nil {
		return nil, fmt.Errorf("inspect purge %s: %w", p.Name, err)
	}
	i.Checks = fixedOnce(i.findings.checks)
	return i, nil
}

// fixedOnce leaves the statement that builds an index to one of the checks that ask for it: the first that refuses, or the
// first.
func fixedOnce(checks []Check) []Check {
	keeps := map[string]int{}
	for n, c := range checks {
		if !strings.HasPrefix(c.Fix, "CREATE INDEX") {
			continue
		}
		at, ok := keeps[c.Fix]
		switch {
		case !ok:
			keeps[c.Fix] = n
			continue
		case c.Result == Refused && checks[at].Result != Refused:
			keeps[c.Fix], n = n, at
		}
		checks[n].Fix = ""
	}
	return checks
}

// Refused lists the checks that refuse the purge; none means that it may run.
func (i *PurgeInspection) Refused() []Check {
	return slices.DeleteFunc(slices.Clone(i.Checks), func(c Check) bool { return c.Result != Refused })
}

// Open returns what removes the tenant, or a [*RefusedError] with the checks that refuse it.
func (i *PurgeInspection) Open(db *DB) (*Purge, error) {
	if i.Tenant == "" {
		return nil, fmt.Errorf("purge %s was checked for no tenant; inspect it for one", i.Purge.Name)
	}
	if r := i.Refused(); len(r) > 0 {
		return nil, &RefusedError{Purge: i.Purge.Name, Checks: r}
	}
	p := &Purge{db: db, purge: i.Purge}
	for _, s := range i.steps {
		step := *s
		step.db, step.purge, step.tenant, step.gate = db, &p.purge, i.Tenant, gateOf(i.Purge.Name, i.Tenant)
		p.steps = append(p.steps, &step)
	}
	return p, nil
}

// inspect goes from what everything else stands on to the details, and on as far as it can, so that all that is wrong is
// said at once.
func (i *PurgeInspection) inspect(ctx context.Context, q query) error {
	f := &i.findings
	var num int
	if err := q.row(ctx, "SELECT current_user::text, current_setting('server_version_num')::int").Scan(&i.role, &num); err != nil {
		return err
	}
	f.checkVersion(num/10000, num%10000, false)
	i.checkSettings(ctx, q)
	if err := i.readSteps(ctx, q); err != nil {
		return err
	}
	if err := i.checkForgotten(ctx, q); err != nil {
		return err
	}
	if f.refused("kind") {
		return nil
	}
	i.checkPurgeColumns()
	if f.refused("column") {
		return nil
	}
	whom, err := i.checkTypes(ctx, q)
	if err != nil {
		return err
	}
	for _, s := range i.steps {
		if err := i.readDependents(ctx, q, s); err != nil {
			return err
		}
	}
	i.checkPurgeRights()
	i.checkPurgeKeys()
	i.checkOrder()
	if f.refused("column") {
		return nil
	}
	i.checkWalks()
	if i.Tenant == "" {
		return nil
	}
	return i.checkTenant(ctx, q, whom)
}

// checkSettings tries the settings of the purge.
func (i *PurgeInspection) checkSettings(ctx context.Context, q query) {
	for _, set := range i.Purge.Set {
		if err := trial(ctx, q, "SELECT set_config("+literal(set.Name)+", "+literal(set.Value)+", true)"); err != nil {
			i.findings.refuse("server", "set."+set.Name, "", "%s cannot be set: %s", set.Name, plain(err))
		}
	}
}

// readSteps reads the tables of the purge, in the order in which their rows go: the children of a table before it, the
// deepest first.
func (i *PurgeInspection) readSteps(ctx context.Context, q query) error {
	known := map[policy.Name]*table{}
	read := func(n policy.Name, path, what string) (*table, error) {
		t, ok := known[n]
		if !ok {
			var err error
			if t, err = readTable(ctx, q, n); err != nil {
				return nil, err
			}
			known[n] = t
		}
		if t == nil {
			i.findings.refuse("kind", path+".table", "", "%s %s does not exist", what, n)
		} else {
			i.checkPurgeKind(t, path+".table", what)
		}
		return t, nil
	}
	for n, pt := range i.Purge.Tables {
		path := fmt.Sprintf("tables.%d", n)
		top, err := read(pt.Table, path, "table")
		if err != nil {
			return err
		}
		if top == nil {
			continue
		}
		var walk func(path string, above []tier, cs []policy.Child) error
		walk = func(path string, above []tier, cs []policy.Child) error {
			for n, c := range cs {
				at := fmt.Sprintf("%s.children.%d", path, n)
				t, err := read(c.Table, at, "child table")
				if err != nil {
					return err
				}
				if t == nil {
					continue // nothing can be said of what is below it
				}
				l := tier{table: t, key: c.Key}
				chain := append(slices.Clone(above), l)
				if err := walk(at, chain, c.Children); err != nil {
					return err
				}
				s := &removal{chain: chain, spec: tenant.Spec{Table: c.Table}}
				for d := len(above) - 1; d >= 0; d-- {
					s.spec.Of = append(s.spec.Of, above[d].table.name)
				}
				i.steps, i.paths = append(i.steps, s), append(i.paths, at)
			}
			return nil
		}
		if err := walk(path, []tier{{table: top}}, pt.Children); err != nil {
			return err
		}
		i.steps = append(i.steps, &removal{chain: []tier{{table: top}}, spec: tenant.Spec{Table: pt.Table, Column: pt.Column}})
		i.paths = append(i.paths, path)
	}
	// The column of a table is that of its children too.
	for n := len(i.steps) - 1; n >= 0; n-- {
		if s := i.steps[n]; !s.child() {
			s.whom.name = s.spec.Column
		} else {
			s.whom.name = i.steps[i.topOf(n)].spec.Column
		}
	}
	return nil
}

// topOf is the step of the table by which the rows of a step are the tenant's: the next one that is no child.
func (i *PurgeInspection) topOf(n int) int {
	for i.steps[n].child() {
		n++
	}
	return n
}

// checkPurgeKind refuses by kind whatever has no rows with an address of their own, or whose deletes the server refuses.
func (i *PurgeInspection) checkPurgeKind(t *table, key, what string) {
	f := &i.findings
	switch {
	case t.kind == "p":
		f.refuse("kind", key, "name its partitions, each as a table of its own", "%s is a partitioned table, which is planned, not in this version", t.name)
	case t.parent:
		f.refuse("kind", key, "name the tables that inherit from it, each as a table of its own", "%s is an inheritance parent: rows of other tables appear in it", t.name)
	case len(t.published) > 0 && t.identity != "f" && (!t.hasKey || t.identity == "n"):
		f.refuse("kind", key, fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY FULL;", tableName(t.name)), "%s is in publication %s, which publishes deletes, and has no replica identity", t.name, strings.Join(t.published, ", "))
	default:
		f.checkKind(t, key, what)
	}
}
