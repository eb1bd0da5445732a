package postgres

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/prunectl/prunectl/connections"
)

// DB is what a Store asks: a *pgxpool.Pool, a *pgxpool.Conn, a *pgx.Conn, or a pgx.Tx for a transaction of the caller's own. On a connection
// or in a transaction the Store is for one goroutine at a time.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Options says where the table is.
type Options struct {
	// Schema is the schema of the table, public when empty. Any name will do, it is quoted.
	Schema string
}

// Store is the store in one schema of one database. It implements [connections.Store].
type Store struct {
	db     DB
	schema string
	text   statements
}

var _ connections.Store = (*Store)(nil)

// New returns the store over the table in the schema of o. It does not ask the database.
func New(db DB, o Options) *Store {
	schema := cmp.Or(o.Schema, "public")
	return &Store{db, schema, render(schema)}
}

// Create keeps a new connection, see [connections.Store]. Whoever creates the same one in a transaction that is open is
// waited for.
func (s *Store) Create(ctx context.Context, d connections.Draft) (connections.Connection, error) {
	d = d.WithDefaults()
	if err := d.Check(); err != nil {
		return connections.Connection{}, err
	}
	row := s.db.QueryRow(ctx, s.text.create, d.Tenant, d.ID, d.Kind, d.Name, string(d.Settings), parameter{d.Secret})
	return one(d.Tenant, row, connections.ErrExists, "create connection %q of tenant %q", d.ID, d.Tenant)
}

// Get returns a connection with its secret, see [connections.Store].
func (s *Store) Get(ctx context.Context, tenant, id string) (connections.Connection, error) {
	if err := cmp.Or(connections.CheckTenant(tenant), connections.CheckID(id)); err != nil {
		return connections.Connection{}, err
	}
	var digits *string
	row := s.db.QueryRow(ctx, s.text.get, tenant, id)
	c, err := one(tenant, row, connections.ErrNotFound, "get connection %q of tenant %q", id, tenant, &digits)
	if err == nil && digits != nil {
		secret, _ := hex.DecodeString(*digits) // the server wrote them
		c.Secret = connections.NewSecret(secret)
	}
	return c, err
}

// List returns a page of a tenant's connections, see [connections.Store].
func (s *Store) List(ctx context.Context, tenant string, p connections.Page) (connections.List, error) {
	p = p.WithDefaults()
	if err := cmp.Or(connections.CheckTenant(tenant), p.Check()); err != nil {
		return connections.List{}, err
	}
	created, id, err := p.After.Position()
	if err != nil {
		return connections.List{}, err
	}
	after := pgtype.Timestamptz{Time: created, Valid: true}
	if created.IsZero() {
		after = pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	}
	// One more than is asked for says whether there is more.
	rows, err := s.db.Query(ctx, s.text.list, tenant, after, id, int64(p.Limit)+1)
	if err != nil {
		return connections.List{}, failed(err, "list connections of tenant %q", tenant)
	}
	var l connections.List
	l.Connections, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (connections.Connection, error) { return scan(tenant, row) })
	if err != nil {
		return connections.List{}, failed(err, "list connections of tenant %q", tenant)
	}
	if len(l.Connections) > p.Limit {
		l.Connections = l.Connections[:p.Limit]
		l.Next = connections.CursorAfter(l.Connections[p.Limit-1])
	}
	return l, nil
}

// Update changes a connection, see [connections.Store]. Whoever changes or revokes it in a transaction that is open is waited
// for.
func (s *Store) Update(ctx context.Context, tenant, id string, c connections.Change) (connections.Connection, error) {
	if err := cmp.Or(connections.CheckTenant(tenant), connections.CheckID(id), c.Check()); err != nil {
		return connections.Connection{}, err
	}
	var settings *string
	if c.Settings != nil {
		text := string(c.Settings)
		settings = &text
	}
	var secret connections.Secret
	if c.Secret != nil {
		secret = *c.Secret
	}
	row := s.db.QueryRow(ctx, s.text.update, tenant, id, c.Name, settings, c.Secret != nil, parameter{secret})
	return one(tenant, row, connections.ErrNotFound, "update connection %q of tenant %q", id, tenant)
}

// Revoke ends a connection, see [connections.Store]. Whoever changes or revokes it in a transaction that is open is waited for.
func (s *Store) Revoke(ctx context.Context, tenant, id string) (time.Time, error) {
	if err := cmp.Or(connections.CheckTenant(tenant), connections.CheckID(id)); err != nil {
		return time.Time{}, err
	}
	var at time.Time
	err := s.db.QueryRow(ctx, s.text.revoke, tenant, id).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		err = connections.ErrNotFound
	}
	if err != nil {
		return time.Time{}, failed(err, "revoke connection %q of tenant %q", id, tenant)
	}
	return at.UTC(), nil
}

// one reads the one row of a statement; none is the error that is given.
func one(tenant string, row pgx.Row, none error, format, a, b string, more ...any) (connections.Connection, error) {
	c, err := scan(tenant, row, more...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = none
	}
	if err != nil {
		return connections.Connection{}, failed(err, format, a, b)
	}
	return c, nil
}

// scan reads the columns that every statement which returns connections has in front.
func scan(tenant string, row pgx.Row, more ...any) (connections.Connection, error) {
	c := connections.Connection{Tenant: tenant}
	var settings string
	if err := row.Scan(append([]any{&c.ID, &c.Kind, &c.Name, &settings, &c.Created, &c.Updated}, more...)...); err != nil {
		return connections.Connection{}, err
	}
	c.Settings, c.Created, c.Updated = []byte(settings), c.Created.UTC(), c.Updated.UTC()
	return c, nil
}
