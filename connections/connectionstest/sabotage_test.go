package connectionstest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prunectl/prunectl/connections"
	"github.com/prunectl/prunectl/connections/memory"
)

// defect is one thing that is wrong with a store, and the check that must report it.
type defect struct {
	check, name string
	broken      func(*broken)
}

// broken is the store in memory, with calls in place of its own.
type broken struct {
	connections.Store
	create func(ctx context.Context, d connections.Draft) (connections.Connection, error)
	get    func(ctx context.Context, tenant, id string) (connections.Connection, error)
	list   func(ctx context.Context, tenant string, p connections.Page) (connections.List, error)
	update func(ctx context.Context, tenant, id string, c connections.Change) (connections.Connection, error)
	revoke func(ctx context.Context, tenant, id string) (time.Time, error)
	purge  func(ctx context.Context, tenant string) (int, error)
}

func (b *broken) Create(ctx context.Context, d connections.Draft) (connections.Connection, error) {
	return b.create(ctx, d)
}

func (b *broken) Get(ctx context.Context, tenant, id string) (connections.Connection, error) {
	return b.get(ctx, tenant, id)
}

func (b *broken) List(ctx context.Context, tenant string, p connections.Page) (connections.List, error) {
	return b.list(ctx, tenant, p)
}

func (b *broken) Update(ctx context.Context, tenant, id string, c connections.Change) (connections.Connection, error) {
	return b.update(ctx, tenant, id, c)
}

func (b *broken) Revoke(ctx context.Context, tenant, id string) (time.Time, error) {
	return b.revoke(ctx, tenant, id)
}

func (b *broken) Purge(ctx context.Context, tenant string) (int, error) { return b.purge(ctx, tenant) }

func sabotage(d defect) Factory {
	return func(context.Context) (connections.Store, error) {
		at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		s := memory.New(func() time.Time { at = at.Add(time.Second); return at })
		b := &broken{s, s.Create, s.Get, s.List, s.Update, s.Revoke, s.Purge}
		d.broken(b)
		return b, nil
	}
}

// folded takes tenants for one another that are the same when they are folded by f.
func folded(f func(string) string) func(*broken) {
	return func(b *broken) {
		create, get, list, update, revoke, purge := b.create, b.get, b.list, b.update, b.revoke, b.purge
		b.create = func(ctx context.Context, d connections.Draft) (connections.Connection, error) {
			d.Tenant = f(d.Tenant)
			return create(ctx, d)
		}
		b.get = func(ctx context.Context, t, id string) (connections.Connection, error) { return get(ctx, f(t), id) }
		b.list = func(ctx context.Context, t string, p connections.Page) (connections.List, error) {
			return list(ctx, f(t), p)
		}
		b.update = func(ctx context.Context, t, id string, c connections.Change) (connections.Connection, error) {
			return update(ctx, f(t), id, c)
		}
		b.revoke = func(ctx context.Context, t, id string) (time.Time, error) { return revoke(ctx, f(t), id) }
		b.purge = func(ctx context.Context, t string) (int, error) { return purge(ctx, f(t)) }
	}
}

// alsoPurges purges others too whose names fit.
func alsoPurges(fits func(tenant, other string) bool) func(*broken) {
	return func(b *broken) {
		purge := b.purge
		b.purge = func(ctx context.Context, tenant string) (int, error) {
			for _, o := range tenants {
				if o != tenant && fits(tenant, o) {
					if _, err := purge(ctx, o); err != nil {
						return 0, err
					}
				}
			}
			return purge(ctx, tenant)
		}
	}
}

// got changes what Get returns.
func got(change func(*connections.Connection)) func(*broken) {
	return func(b *broken) {
		get := b.get
		b.get = func(ctx context.Context, t, id string) (connections.Connection, error) {
			c, err := get(ctx, t, id)
			if err == nil {
				change(&c)
			}
			return c, err
		}
	}
}

// listed changes what List is asked and what it returns.
func listed(before func(*connections.Page), after func(*connections.List)) func(*broken) {
	return func(b *broken) {
		list := b.list
		b.list = func(ctx context.Context, t string, p connections.Page) (connections.List, error) {
			before(&p)
			l, err := list(ctx, t, p)
			if err == nil {
				after(&l)
			}
			return l, err
		}
	}
}

func asIs(*connections.Page) {}

// graves are connections that were revoked, with their secrets, by tenant and id.
type graves map[[2]string]connections.Connection

// keep remembers what is revoked.
func (g graves) keep(b *broken) {
	revoke, get := b.revoke, b.get
	b.revoke = func(ctx context.Context, t, id string) (time.Time, error) {
		c, getErr := get(ctx, t, id)
		at, err := revoke(ctx, t, id)
		if getErr == nil && err == nil {
			g[[2]string{t, id}] = c
		}
		return at, err
	}
}

// detailed is an error that is quiet by %v and %s, and has a detail.
type detailed struct {
	error
	Detail []byte
}

func (d *detailed) Unwrap() error { return d.error }

// Each check reports the stores that break it, and there is one for each.
func TestEachCheckBites(t *testing.T) {
	proved := map[string]bool{}
	for _, d := range defects {
		t.Run(d.check+"/"+d.name, func(t *testing.T) {
			i := slices.IndexFunc(Checks(), func(c Check) bool { return c.Name == d.check })
			if i < 0 {
				t.Fatal("there is no such check")
			}
			proved[d.check] = true
			err := Checks()[i].Run(t.Context(), sabotage(d))
			if err == nil {
				t.Error("it was not reported")
			}
			t.Log(err)
		})
	}
	for _, c := range Checks() {
		if !proved[c.Name] {
			t.Errorf("no store breaks: %s", c.Name)
		}
	}
	for _, c := range Checks() {
		if err := c.Run(t.Context(), sabotage(defect{broken: func(*broken) {}})); err != nil {
			t.Errorf("without a defect: %s: %v", c.Name, err)
		}
	}
}

func TestASecretIsSeenInEachForm(t *testing.T) {
	secret := []byte(`q"\x`)
	for _, text := range []string{`a q"\x b`, `{"a":"q\"\\x"}`, "71225C78", "cSJceA==", "[113 34 92 120]", "[]byte{0x71, 0x22, 0x5c, 0x78}"} {
		if !Shows(text, secret) {
			t.Errorf("not in %s", text)
		}
	}
	if Shows(Printed(connections.NewSecret(secret)), secret) {
		t.Error("a secret shows itself")
	}
}
