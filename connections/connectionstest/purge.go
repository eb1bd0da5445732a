package connectionstest

import (
	"context"
	"fmt"

	"github.com/prunectl/prunectl/connections"
)

var purgeChecks = []Check{
	{"a purge removes all of a tenant", purgeRemovesAll},
	{"a purge removes nothing of another tenant", purgeRemovesNothingElse},
	{"a purge of an unknown tenant removes nothing", purgeOfUnknown},
}

// purged holds that a purge removes so many.
func (p *problems) purged(ctx context.Context, s connections.Store, tenant string, want int) {
	n, err := s.Purge(ctx, tenant)
	p.is(err, nil, "purge tenant %q", tenant)
	if n != want {
		p.add("a purge of tenant %q removed %d, want %d", tenant, n, want)
	}
}

func purgeRemovesAll(ctx context.Context, s connections.Store) error {
	var p problems
	for i := range 7 {
		id := fmt.Sprint(i)
		if err := create(ctx, s, draft("t", id)); err != nil {
			return err
		}
		if i%2 == 0 {
			_, err := s.Revoke(ctx, "t", id)
			p.is(err, nil, "revoke")
		}
	}
	p.purged(ctx, s, "t", 7)
	p.holds(ctx, s, "t")
	for _, id := range []string{"0", "1"} { // revoked before, and not
		_, err := s.Get(ctx, "t", id)
		p.is(err, connections.ErrNotFound, "get %s after a purge", id)
		_, err = s.Revoke(ctx, "t", id)
		p.is(err, connections.ErrNotFound, "revoke %s after a purge", id)
	}
	p.purged(ctx, s, "t", 0)
	// The ids are free again, those of revoked ones too.
	if err := create(ctx, s, draft("t", "0"), draft("t", "1")); err != nil {
		p.add("after a purge: %w", err)
	}
	p.holds(ctx, s, "t", "0", "1")
	return p.err()
}

func purgeRemovesNothingElse(ctx context.Context, s connections.Store) error {
	var p problems
	fill := func(t string) {
		if err := create(ctx, s, draft(t, "kept"), draft(t, "revoked")); err != nil {
			p = append(p, err)
		}
		_, err := s.Revoke(ctx, t, "revoked")
		p.is(err, nil, "revoke")
	}
	for _, t := range tenants {
		fill(t)
	}
	// What a purge takes of others is missing in theirs: of those that come behind in the first round, of all in the second.
	for _, t := range tenants {
		p.purged(ctx, s, t, 2)
		p.holds(ctx, s, t)
		fill(t)
	}
	for _, t := range tenants {
		p.holds(ctx, s, t, "kept")
		p.purged(ctx, s, t, 2)
	}
	return p.err()
}

func purgeOfUnknown(ctx context.Context, s connections.Store) error {
	var p problems
	p.purged(ctx, s, "acme", 0)
	if err := create(ctx, s, draft("acme", "c")); err != nil {
		return err
	}
	for _, t := range tenants {
		if t != "acme" {
			p.purged(ctx, s, t, 0)
		}
	}
	p.holds(ctx, s, "acme", "c")
	return p.err()
}
