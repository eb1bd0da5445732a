package retention_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	odd  = `Odd "schema"`
	day  = 24 * time.Hour
	week = 7 * day
)

// installed is a database with the component in two schemas.
var installed = pgtest.NewTemplate("inboxretention", func(ctx context.Context, dsn string) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	for _, schema := range []string{"", odd} {
		m, err := migrations.New(config, migrations.Options{Component: "inbox_outbox", Schema: schema})
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

// bounded is the test's context with an end to waiting.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
