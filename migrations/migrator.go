package migrations

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// DefaultLockWait is how long a migrator tries for the lock that another one
// holds, unless Options says otherwise.
const DefaultLockWait = 5 * time.Minute

// Options says what is migrated, and where.
type Options struct {
	// Component is one of Components().
	Component string
	// Schema is the schema of the component's tables and ledger, DefaultSchema when
	// empty. It must exist, but for a component that has a schema of its own: that one
	// makes it, whatever its name. Any name will do, it is quoted, but for one with a
	// line break.
	Schema string
	// LockWait is how long another migrator of the same component and schema is
	// waited for, in whole seconds; DefaultLockWait when zero.
	LockWait time.Duration
}

// Migrator migrates one component in one schema. Its methods may be called by
// several goroutines at once; they take turns on its one connection.
type Migrator struct {
	db        *sql.DB
	component *component
	schema    string
	lockWait  time.Duration
	folder    fs.FS
	ledger    ledger
}

// New returns a migrator over the database of config. It does not connect yet.
// Close it when done.
func New(config *pgx.ConnConfig, o Options) (*Migrator, error) {
	c, err := find(o.Component)
	if err != nil {
		return nil, err
	}
	schema := cmp.Or(o.Schema, DefaultSchema(o.Component))
	if err := checkSchema(schema); err != nil {
		return nil, err
	}
	if o.LockWait < 0 {
		return nil, fmt.Errorf("lock wait %s is negative", o.LockWait)
	}
	folder, err := c.folderFor(schema)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*config.Copy(), stdlib.OptionAfterConnect(settings))
	db.SetMaxOpenConns(1) // lock and work share a session; a second one would only be in the way
	return &Migrator{
		db:        db,
		component: c,
		schema:    schema,
		lockWait:  cmp.Or(o.LockWait, DefaultLockWait),
		folder:    folder,
		ledger:    ledger{component: c, schema: schema},
	}, nil
}

// settings makes a session fit for a long build: no timeout of the role's ends it,
// and no object is found by a search path.
func settings(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET search_path = pg_catalog`)
	return err
}

// Close gives the connection back.
func (m *Migrator) Close() error { return m.db.Close() }

// Applied is one version that went up or down.
type Applied struct {
	Version
	Duration time.Duration
	// Rebuilt is set where an earlier run had left this version half done, or its
	// index had been lost since: it was made again.
	Rebuilt bool
}

// Up applies what is missing, oldest first, and mends indexes that are missing or
// not valid. It returns what it applied, nothing when there was nothing to do; the
// list is true beside an error. After Up returns no error, every declared index is
// there, valid and as declared.
//
// The error wraps ErrNewer, ErrBusy, ErrIndexDiffers, ErrSchema or ErrReadOnly,
// or is the server's. When ctx ends, the version in hand is given up; Up can be
// run again.
func (m *Migrator) Up(ctx context.Context) ([]Applied, error) {
	if err := m.writable(ctx); err != nil {
		return nil, err
	}
	var done []Applied
	for _, v := range m.component.versions {
		applied, err := m.up(ctx, v)
		if err != nil {
			return done, err
		}
		if applied != nil {
			done = append(done, *applied)
		}
	}
	return done, nil
}

// up applies one version in a turn of its own, nil where it is applied already.
func (m *Migrator) up(ctx context.Context, v version) (*Applied, error) {
	began, rebuilt := time.Now(), false
	provider, turn, err := m.provider(func(ctx context.Context, conn *sql.Conn) error {
		return m.beforeUp(ctx, conn, v, &rebuilt)
	})
	if err != nil {
		return nil, err
	}
	// One version a call: it takes the lock before it looks at the ledger. The
	// library's way to apply all looks first, and creates the ledger, without it.
	result, err := provider.ApplyVersion(ctx, int64(v.number), true)
	switch {
	case turn.refused != nil:
		return nil, turn.refused
	case errors.Is(err, goose.ErrAlreadyApplied) && rebuilt:
		return &Applied{Version: v.public(), Duration: time.Since(began), Rebuilt: true}, nil
	case errors.Is(err, goose.ErrAlreadyApplied):
		return nil, nil
	case err != nil:
		return nil, m.failed(ctx, v, err)
	}
	return &Applied{Version: v.public(), Duration: result.Duration, Rebuilt: rebuilt}, nil
}

// Down takes the newest installed version down, that one only, and returns it; nil
// where nothing is installed. A version whose tables hold rows stays
// (ErrHoldsRows). Other errors are those of Up.
func (m *Migrator) Down(ctx context.Context) (*Applied, error) {
	if err := m.writable(ctx); err != nil {
		return nil, err
	}
	records, err := m.ledger.records(ctx, m.db)
	if err != nil || len(records) == 0 {
		return nil, err // nothing installed: leave no ledger behind either
	}
	provider, turn, err := m.provider(m.beforeDown)
	if err != nil {
		return nil, err
	}
	result, err := provider.Down(ctx)
	switch {
	case turn.refused != nil:
		return nil, turn.refused
	case errors.Is(err, goose.ErrNoNextVersion):
		return nil, nil // somebody else took down the last one
	case err != nil:
		return nil, m.failed(ctx, m.component.versions[min(records[0].number, m.component.known())-1], err)
	}
	v := m.component.versions[result.Source.Version-1]
	return &Applied{Version: v.public(), Duration: result.Duration}, nil
}

// provider is the migration library for one turn.
func (m *Migrator) provider(prepare func(context.Context, *sql.Conn) error) (*goose.Provider, *session, error) {
	turn, err := m.newSession(prepare)
	if err != nil {
		return nil, nil, err
	}
	p, err := goose.NewProvider(goose.DialectCustom, m.db, m.folder,
		goose.WithStore(m.ledger),
		goose.WithSessionLocker(turn),
		goose.WithDisableGlobalRegistry(true), // migrations of the program that embeds us are not ours
	)
	return p, turn, err
}

// failed makes the library's error ours: which version, and what to do. v is the
// version that was meant, in case the library does not say.
func (m *Migrator) failed(ctx context.Context, v version, err error) error {
	var partial *goose.PartialError
	if !errors.As(err, &partial) {
		return err
	}
	if partial.Failed != nil && partial.Failed.Source != nil {
		v = m.component.versions[partial.Failed.Source.Version-1]
	}
	if ctx.Err() != nil {
		return fmt.Errorf("version %d %s of component %s in schema %s given up: %w; run it again", v.number, v.name, m.component.name, m.schema, ctx.Err())
	}
	return m.explain(v, partial.Err)
}

// writable says early, and in our words, what would otherwise fail half-way in the
// server's.
func (m *Migrator) writable(ctx context.Context) error {
	var exists, create, readOnly, createSchema bool
	var role, database string
	err := m.db.QueryRowContext(ctx, `
SELECT n.oid IS NOT NULL,
       coalesce(pg_catalog.has_schema_privilege(n.oid, 'CREATE'), false),
       pg_catalog.pg_is_in_recovery() OR pg_catalog.current_setting('transaction_read_only')::boolean,
       pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE'),
       current_user::text,
       pg_catalog.current_database()::text
  FROM (VALUES ($1::text)) AS wanted (name)
  LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = wanted.name`, m.schema).
		Scan(&exists, &create, &readOnly, &createSchema, &role, &database)
	quoted := pgx.Identifier{m.schema}.Sanitize()
	switch {
	case err != nil:
		return fmt.Errorf("look at schema %s: %w", m.schema, err)
	case readOnly:
		return fmt.Errorf("%w: the server is a standby, or this database or role is read-only by default; migrate on the primary, as a role that may write", ErrReadOnly)
	case !exists && m.component.schema != "" && createSchema:
		return nil
	case !exists && m.component.schema != "":
		return fmt.Errorf("%w: schema %s does not exist, and role %s may not create it; GRANT CREATE ON DATABASE %s TO %s, or CREATE SCHEMA %[2]s AUTHORIZATION %[5]s",
			ErrSchema, quoted, role, pgx.Identifier{database}.Sanitize(), pgx.Identifier{role}.Sanitize())
	case !exists:
		return fmt.Errorf("%w: schema %s does not exist; create it first: CREATE SCHEMA %s", ErrSchema, m.schema, quoted)
	case !create:
		return fmt.Errorf("%w: role %s may not create in schema %s; GRANT CREATE ON SCHEMA %s TO %s",
			ErrSchema, role, m.schema, quoted, pgx.Identifier{role}.Sanitize())
	}
	return nil
}
