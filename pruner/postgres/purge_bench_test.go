package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// public is a name in the schema public.
func public(table string) policy.Name { return policy.Name{Schema: "public", Table: table} }

// keyTo is a key of one column.
func keyTo(parent, child string) []policy.ChildKey {
	return []policy.ChildKey{{Parent: parent, Child: child}}
}

// purgeOf is a purge of these tables by the column tenant_id. A name with a column behind a space has that one.
func purgeOf(tables ...string) policy.Purge {
	p := policy.Purge{Name: "tenant", Key: "tenant_id"}
	for _, t := range tables {
		name, column, _ := strings.Cut(t, " ")
		p.Tables = append(p.Tables, policy.PurgeTable{Table: public(name), Column: column})
	}
	return p
}

// openPurge inspects and opens a purge that nothing is wrong with.
func openPurge(t testing.TB, db *DB, p policy.Purge, of string) *Purge {
	t.Helper()
	i, err := InspectPurge(t.Context(), db, p, of)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := i.Open(db)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// errSpins is a pass that does not end.
var errSpins = errors.New("the pass does not end")

// passOf runs a pass over a step, and holds it to what the port says of passes.
func passOf(ctx context.Context, s tenant.Step, limit int) (sum pruner.Result, err error) {
	var at pruner.Cursor
	seen := map[pruner.Cursor]bool{}
	for range 2000 {
		res, err := s.Remove(ctx, tenant.Batch{Limit: limit, After: at})
		if err != nil {
			return sum, err
		}
		switch {
		case res.Busy:
			sum.Busy = true
			return sum, nil
		case res.Examined > limit:
			return sum, fmt.Errorf("a batch examined %d rows with limit %d", res.Examined, limit)
		case res.Removed+res.Locked+res.Stuck+res.Moved != res.Examined:
			return sum, fmt.Errorf("a batch counted %+v", res)
		}
		sum = plusPurged(sum, res)
		if res.End {
			return sum, nil
		}
		if seen[res.Next] && res.Removed == 0 {
			return sum, fmt.Errorf("a batch came back to %s and removed nothing", res.Next)
		}
		seen[res.Next] = true
		at = res.Next
	}
	return sum, errSpins
}

// plusPurged adds what a batch counted.
func plusPurged(a, b pruner.Result) pruner.Result {
	a.Examined += b.Examined
	a.Removed += b.Removed
	a.Locked += b.Locked
	a.Stuck += b.Stuck
	a.Moved += b.Moved
	for _, by := range b.Blocked {
		n := slices.IndexFunc(a.Blocked, func(o pruner.Block) bool { return o.Constraint == by.Constraint && o.Table == by.Table })
		if n < 0 {
			a.Blocked = append(a.Blocked, by)
		} else {
			a.Blocked[n].Rows += by.Rows
		}
	}
	return a
}

// purgeAll runs passes over all steps until they remove nothing, and returns the sums of each step: of the last pass those
// of what stays.
func purgeAll(ctx context.Context, p *Purge, limit int) (sums []pruner.Result, err error) {
	sums = make([]pruner.Result, len(p.Steps()))
	for range 50 {
		removed := 0
		for i, s := range p.Steps() {
			res, err := passOf(ctx, s, limit)
			if err != nil {
				return sums, fmt.Errorf("%s: %w", s.Spec().Table, err)
			}
			removed += res.Removed
			res.Removed += sums[i].Removed
			sums[i] = res
		}
		if removed == 0 {
			return sums, nil
		}
	}
	return sums, errors.New("the passes do not end")
}

// leftOf looks at what is left, as "2 0 1+".
func leftOf(t testing.TB, p *Purge, bound int) string {
	t.Helper()
	proof, err := p.Look(t.Context(), bound)
	if err != nil {
		t.Fatal(err)
	}
	var ls []string
	for _, l := range proof.Left {
		ls = append(ls, fmt.Sprint(l.Rows)+map[bool]string{true: "+"}[l.More])
	}
	return strings.Join(ls, " ")
}

// rowsOf counts the rows of tables, as "a 2 b 0".
func rowsOf(t testing.TB, db *pgtest.DB, tables ...string) string {
	t.Helper()
	var ns []string
	for _, table := range tables {
		ns = append(ns, table+" "+db.Text(t, "SELECT count(*)::text FROM "+table))
	}
	return strings.Join(ns, " ")
}
