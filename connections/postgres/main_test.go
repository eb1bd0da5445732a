package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/connections"
	"github.com/prunectl/prunectl/connections/postgres"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const odd = `Odd "schema"`

// installed is a database with the component in two schemas.
var installed = pgtest.NewTemplate("connections", func(ctx context.Context, dsn string) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `create schema "Odd ""schema"""`)
	if e := conn.Close(ctx); err == nil {
		err = e
	}
	for _, schema := range []string{"", odd} {
		if err != nil {
			return err
		}
		m, e := migrations.New(config, migrations.Options{Component: "connections", Schema: schema})
		if e != nil {
			return e
		}
		defer m.Close()
		_, err = m.Up(ctx)
	}
	return err
})

var modes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}

// in sets the exec mode of a pool.
func in(mode pgx.QueryExecMode) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode }
}

func store(db postgres.DB) *postgres.Store { return postgres.New(db, postgres.Options{}) }

// bounded is the test's context with an end to waiting.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// draft is one that can be created.
func draft(tenant, id string) connections.Draft {
	return connections.Draft{Tenant: tenant, ID: id, Kind: "k", Name: "n", Secret: connections.NewSecret([]byte("secret"))}
}

// create creates a connection on its own.
func create(t *testing.T, db postgres.DB, tenant, id string) connections.Connection {
	t.Helper()
	c, err := store(db).Create(bounded(t), draft(tenant, id))
	must(t, err)
	return c
}

// begin opens a transaction on a connection of its own.
func begin(t *testing.T, db *pgtest.DB) pgx.Tx {
	t.Helper()
	tx, err := db.Conn(t).Begin(bounded(t))
	must(t, err)
	return tx
}
