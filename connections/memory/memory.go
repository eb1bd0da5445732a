// Package memory is a store of connections in memory, for tests, and for programs that can lose them.
package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prunectl/prunectl/connections"
)

// Store is a store in memory. It implements [connections.Store].
type Store struct {
	now func() time.Time

	mu   sync.Mutex
	rows map[key]row
}

var _ connections.Store = (*Store)(nil)

type key struct{ tenant, id string }

type row struct {
	connections.Connection
	revoked time.Time // zero where it is not
}

// New returns an empty store. The clock is asked once a call that writes; nil is the system's.
func New(now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{now: now, rows: map[key]row{}}
}

// Create keeps a new connection, see [connections.Store].
func (s *Store) Create(ctx context.Context, d connections.Draft) (connections.Connection, error) {
	d = d.WithDefaults()
	if err := cmp.Or(d.Check(), ctx.Err()); err != nil {
		return connections.Connection{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{d.Tenant, d.ID}
	if _, ok := s.rows[k]; ok {
		return connections.Connection{}, fmt.Errorf("create connection %q of tenant %q: %w", d.ID, d.Tenant, connections.ErrExists)
	}
	at := s.clock()
	c := connections.Connection{Tenant: d.Tenant, ID: d.ID, Kind: d.Kind, Name: d.Name, Settings: slices.Clone(d.Settings), Secret: d.Secret, Created: at, Updated: at}
	s.rows[k] = row{Connection: c}
	return shown(c), nil
}

// Get returns a connection with its secret, see [connections.Store].
func (s *Store) Get(ctx context.Context, tenant, id string) (connections.Connection, error) {
	if err := cmp.Or(connections.CheckTenant(tenant), connections.CheckID(id), ctx.Err()); err != nil {
		return connections.Connection{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.rows[key{tenant, id}]
	if !ok || !r.revoked.IsZero() {
		return connections.Connection{}, fmt.Errorf("get connection %q of tenant %q: %w", id, tenant, connections.ErrNotFound)
	}
	c := shown(r.Connection)
	c.Secret = r.Secret
	return c, nil
}

// List returns a page of a tenant's connections, see [connections.Store].
func (s *Store) List(ctx context.Context, tenant string, p connections.Page) (connections.List, error) {
	p = p.WithDefaults()
	if err := cmp.Or(connections.CheckTenant(tenant), p.Check(), ctx.Err()); err != nil {
		return connections.List{}, err
	}
	created, id, err := p.After.Position()
	if err != nil {
		return connections.List{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var list connections.List
	for k, r := range s.rows {
		if k.tenant == tenant && r.revoked.IsZero() && order(r.Connection, connections.Connection{Created: created, ID: id}) > 0 {
			list.Connections = append(list.Connections, shown(r.Connection))
		}
	}
	slices.SortFunc(list.Connections, order)
	if len(list.Connections) > p.Limit {
		list.Connections = list.Connections[:p.Limit]
		list.Next = connections.CursorAfter(list.Connections[p.Limit-1])
	}
	return list, nil
}

// Update changes a connection, see [connections.Store].
func (s *Store) Update(ctx context.Context, tenant, id string, c connections.Change) (connections.Connection, error) {
	if err := cmp.Or(connections.CheckTenant(tenant), connections.CheckID(id), c.Check(), ctx.Err()); err != nil {
		return connections.Connection{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.rows[key{tenant, id}]
	if !ok || !r.revoked.IsZero() {
		return connections.Connection{}, fmt.Errorf("update connection %q of tenant %q: %w", id, tenant, connections.ErrNotFound)
	}
	if c.Name != nil {
		r.Name = *c.Name
	}
	if c.Settings != nil {
		r.Settings = slices.Clone(c.Settings)
	}
	if c.Secret != nil {
		r.Secret = *c.Secret
	}
	r.Updated = later(s.clock(), r.Updated)
	s.rows[key{tenant, id}] = r
	return shown(r.Connection), nil
}

// Revoke ends a connection, see [connections.Store].
func (s *Store) Revoke(ctx context.Context, tenant, id string) (time.Time, error) {
	if err := cmp.Or(connections.CheckTenant(tenant), connections.CheckID(id), ctx.Err()); err != nil {
		return time.Time{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.rows[key{tenant, id}]
	if !ok {
		return time.Time{}, fmt.Errorf("revoke connection %q of tenant %q: %w", id, tenant, connections.ErrNotFound)
	}
	if r.revoked.IsZero() {
		r.revoked, r.Secret = later(s.clock(), r.Updated), connections.Secret{}
		s.rows[key{tenant, id}] = r
	}
	return r.revoked, nil
}

// Purge removes all connections of a tenant, see [connections.Store]. Nothing is ever left.
func (s *Store) Purge(ctx context.Context, tenant string) (int, error) {
	if err := cmp.Or(connections.CheckTenant(tenant), ctx.Err()); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.rows)
	maps.DeleteFunc(s.rows, func(k key, _ row) bool { return k.tenant == tenant })
	return before - len(s.rows), nil
}

// clock is the time in whole microseconds, as a database has it.
func (s *Store) clock() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

// shown is a copy that is the caller's, without the secret.
func shown(c connections.Connection) connections.Connection {
	c.Settings, c.Secret = json.RawMessage(slices.Clone(c.Settings)), connections.Secret{}
	return c
}

func order(a, b connections.Connection) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
