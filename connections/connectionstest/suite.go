// Package connectionstest is the contract of [connections.Store] as a suite of checks, which runs on every implementation.
//
// A check returns an error rather than failing a test, so that the suite itself can be proved: for each check there is a store
// with one defect that it must report. Races that need a pause in the middle of a call, plans and rights are for the
// implementation's own tests.
package connectionstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/prunectl/prunectl/connections"
)

// Factory makes a store that is empty. A check calls it once; the store of a check is not used any more when the next one
// is made.
type Factory func(ctx context.Context) (connections.Store, error)

// Check is one part of the contract. Run returns what is wrong with the implementation behind the factory.
type Check struct {
	Name string
	run  func(context.Context, connections.Store) error
}

// Run makes a store and checks it.
func (c Check) Run(ctx context.Context, f Factory) error {
	s, err := f(ctx)
	if err != nil {
		return fmt.Errorf("make a store: %w", err)
	}
	return c.run(ctx, s)
}

// Run runs every check on the implementation, each as a subtest of its name.
func Run(t *testing.T, f Factory) {
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(t.Context(), f); err != nil {
				t.Error(err)
			}
		})
	}
}

// Checks lists the checks of the suite.
func Checks() []Check {
	return slices.Concat(keepChecks, inputChecks, tenantChecks, revokeChecks, listChecks, purgeChecks, secretChecks)
}

// tenants are names that are easily taken for one another, or for something else than a name.
var tenants = []string{
	"acme", "Acme", "ACME", "acme ", " acme", "acme  ", "acme\t", "acme\n", "ac me", "acm", "acmee", "acm_", "acme%", "%", "_", "*", ".", "null", "NULL", "all", "true", "0", "00",
	"'; DROP TABLE connections; --", "' OR '1'='1", "acme' --", `"acme"`, `\`, `acme\`, "$1", "{acme}", "[acme]", "É", "E\u0301", "é", "ß", "ss", "\u200bacme", "ａｃｍｅ", "null\u00a0",
}

// draft is one that can be created.
func draft(tenant, id string) connections.Draft {
	return connections.Draft{Tenant: tenant, ID: id, Kind: "crm", Name: "the crm of " + id, Settings: []byte(`{"region": "eu"}`), Secret: connections.NewSecret([]byte("secret of " + tenant + "/" + id))}
}

// problems collects what is wrong.
type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

// is holds that an error is the one that is meant, nil for none.
func (p *problems) is(err, want error, what string, args ...any) {
	if !errors.Is(err, want) {
		p.add("%s: error %v, want %v", fmt.Sprintf(what, args...), err, want)
	}
}

func (p problems) err() error { return errors.Join(p...) }

// create creates drafts that can be created.
func create(ctx context.Context, s connections.Store, all ...connections.Draft) error {
	for _, d := range all {
		if _, err := s.Create(ctx, d); err != nil {
			return fmt.Errorf("create %q of %q: %w", d.ID, d.Tenant, err)
		}
	}
	return nil
}

// holds holds that the tenant has these connections and no other, by their ids in any order: in its list, and each found.
func (p *problems) holds(ctx context.Context, s connections.Store, tenant string, want ...string) {
	l, err := s.List(ctx, tenant, connections.Page{Limit: connections.MaxLimit})
	p.is(err, nil, "list tenant %q", tenant)
	var got []string
	for _, c := range l.Connections {
		got = append(got, c.ID)
		if c.Tenant != tenant {
			p.add("the list of tenant %q has connection %q of tenant %q", tenant, c.ID, c.Tenant)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		p.add("tenant %q has %q, want %q", tenant, got, want)
	}
	for _, id := range want {
		_, err := s.Get(ctx, tenant, id)
		p.is(err, nil, "get %q of tenant %q", id, tenant)
	}
}
