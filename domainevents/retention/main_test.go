package retention_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const odd = `Odd "schema"`

// installed is a database with the component in two schemas.
var installed = pgtest.NewTemplate("retention", func(ctx context.Context, dsn string) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, schema := range []string{"public", odd} {
		if _, err := conn.Exec(ctx, `create schema if not exists `+pgx.Identifier{schema}.Sanitize()); err != nil {
			return err
		}
		m, err := migrations.New(config, migrations.Options{Component: "domain_events", Schema: schema})
		if err != nil {
			return err
		}
		defer m.Close()
		if _, err := m.Up(ctx); err != nil {
			return err
		}
	}
	return nil
})
