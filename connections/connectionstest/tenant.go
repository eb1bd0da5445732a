package connectionstest

import (
	"context"
	"fmt"
	"slices"

	"github.com/prunectl/prunectl/connections"
)

var tenantChecks = []Check{
	{"a tenant has its own connections alone", tenantsAreApart},
	{"what is another's is not there", anothersIsNotThere},
}

func tenantsAreApart(ctx context.Context, s connections.Store) error {
	var p problems
	for _, t := range tenants {
		if err := create(ctx, s, draft(t, "one"), draft(t, "two")); err != nil {
			return err
		}
	}
	for _, t := range tenants {
		name := "of " + t
		_, err := s.Update(ctx, t, "one", connections.Change{Name: &name})
		p.is(err, nil, "update that of tenant %q", t)
	}
	for _, t := range tenants {
		p.holds(ctx, s, t, "one", "two")
		if c, err := s.Get(ctx, t, "one"); err == nil && (c.Tenant != t || c.Name != "of "+t || !c.Secret.Equal(draft(t, "one").Secret)) {
			p.add("tenant %q gets the connection of %q, or with what was written to another's", t, c.Tenant)
		}
	}
	// Each is revoked by itself, in an order and in the other: all that come behind are found.
	revoke := func(t, id string) {
		_, err := s.Get(ctx, t, id)
		p.is(err, nil, "get that of tenant %q after revocations for others", t)
		_, err = s.Revoke(ctx, t, id)
		p.is(err, nil, "revoke that of tenant %q", t)
	}
	for _, t := range tenants {
		revoke(t, "one")
		p.holds(ctx, s, t, "two")
	}
	for _, t := range slices.Backward(tenants) {
		revoke(t, "two")
		p.holds(ctx, s, t)
	}
	return p.err()
}

// Who asks for an id of another tenant is told what he is told of an unknown one, to the letter.
func anothersIsNotThere(ctx context.Context, s connections.Store) error {
	var p problems
	name := "taken over"
	ask := func() (said []string) {
		_, err := s.Get(ctx, "mine", "theirs")
		p.is(err, connections.ErrNotFound, "get")
		said = append(said, fmt.Sprint(err))
		_, err = s.Update(ctx, "mine", "theirs", connections.Change{Name: &name})
		p.is(err, connections.ErrNotFound, "update")
		said = append(said, fmt.Sprint(err))
		_, err = s.Revoke(ctx, "mine", "theirs")
		p.is(err, connections.ErrNotFound, "revoke")
		return append(said, fmt.Sprint(err))
	}
	before := ask()
	if err := create(ctx, s, draft("another", "theirs"), draft("mine", "mine")); err != nil {
		return err
	}
	for i, said := range ask() {
		if said != before[i] {
			p.add("of another's it is said %q, of an unknown one %q", said, before[i])
		}
	}
	p.holds(ctx, s, "mine", "mine")
	p.holds(ctx, s, "another", "theirs")
	if c, err := s.Get(ctx, "another", "theirs"); err == nil && c.Name == name {
		p.add("it was taken over")
	}
	return p.err()
}
