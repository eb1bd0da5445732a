package connectionstest

import (
	"context"
	"sync"
	"time"

	"github.com/prunectl/prunectl/connections"
)

var revokeChecks = []Check{
	{"a revoked connection is found by nobody", revokedIsNotFound},
	{"the first revocation stays", firstRevocationStays},
	{"of many who revoke all are told the same", allAreToldTheSame},
}

func revokedIsNotFound(ctx context.Context, s connections.Store) error {
	var p problems
	if err := create(ctx, s, draft("t", "a"), draft("t", "b"), draft("t", "c")); err != nil {
		return err
	}
	made, err := s.Get(ctx, "t", "b")
	p.is(err, nil, "get")
	at, err := s.Revoke(ctx, "t", "b")
	p.is(err, nil, "revoke")
	if at.Before(made.Updated) || at.Location() != time.UTC || at.Nanosecond()%1000 != 0 {
		p.add("revoked at %s, which is to be in UTC, whole microseconds and not before %s", at, made.Updated)
	}
	_, err = s.Get(ctx, "t", "b")
	p.is(err, connections.ErrNotFound, "get a revoked one")
	name, secret := "again", connections.NewSecret([]byte("again"))
	_, err = s.Update(ctx, "t", "b", connections.Change{Name: &name, Secret: &secret})
	p.is(err, connections.ErrNotFound, "update a revoked one")
	p.holds(ctx, s, "t", "a", "c")
	_, err = s.Get(ctx, "t", "b")
	p.is(err, connections.ErrNotFound, "get a revoked one after an update")
	_, err = s.Revoke(ctx, "t", "unknown")
	p.is(err, connections.ErrNotFound, "revoke an unknown one")
	return p.err()
}

func firstRevocationStays(ctx context.Context, s connections.Store) error {
	var p problems
	if err := create(ctx, s, draft("t", "c"), draft("t", "d")); err != nil {
		return err
	}
	first, err := s.Revoke(ctx, "t", "c")
	p.is(err, nil, "revoke")
	for range 3 {
		// Something else happens, so that no clock stands still.
		_, err := s.Update(ctx, "t", "d", connections.Change{Settings: []byte(`{}`)})
		p.is(err, nil, "update another")
		again, err := s.Revoke(ctx, "t", "c")
		p.is(err, nil, "revoke again")
		if !again.Equal(first) {
			p.add("revoked at %s, and then at %s", first, again)
		}
	}
	return p.err()
}

func allAreToldTheSame(ctx context.Context, s connections.Store) error {
	var p problems
	if err := create(ctx, s, draft("t", "c")); err != nil {
		return err
	}
	var wait sync.WaitGroup
	times, errs := make([]time.Time, 8), make([]error, 8)
	for i := range times {
		wait.Go(func() { times[i], errs[i] = s.Revoke(ctx, "t", "c") })
	}
	wait.Wait()
	for i := range times {
		p.is(errs[i], nil, "revoke beside others")
		if !times[i].Equal(times[0]) {
			p.add("one is told %s, another %s", times[0], times[i])
		}
	}
	return p.err()
}
