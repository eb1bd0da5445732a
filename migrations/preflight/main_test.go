package preflight

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// odd is a schema whose name needs quotes, and escapes in JSON and in patterns.
const odd = `O'dd "name" \ $1 (é)`

// installed are databases with all of each component, in public and in odd.
var installed = func() map[string]*pgtest.Template {
	all := map[string]*pgtest.Template{}
	for _, component := range migrations.Components() {
		all[component] = pgtest.NewTemplate(component, func(ctx context.Context, dsn string) error {
			conn, err := pgx.Connect(ctx, dsn)
			if err != nil {
				return err
			}
			_, err = conn.Exec(ctx, "create schema "+quote(odd))
			if e := conn.Close(ctx); err == nil {
				err = e
			}
			for _, schema := range []string{"public", odd} {
				if err == nil {
					err = migrate(ctx, dsn, component, schema)
				}
			}
			return err
		})
	}
	return all
}()

func migrate(ctx context.Context, dsn, component, schema string) error {
	return with(dsn, component, schema, func(m *migrations.Migrator) error {
		_, err := m.Up(ctx)
		return err
	})
}

func with(dsn, component, schema string, f func(*migrations.Migrator) error) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	m, err := migrations.New(config, migrations.Options{Component: component, Schema: schema})
	if err != nil {
		return err
	}
	defer m.Close()
	return f(m)
}

// bounded is the test's context with an end to waiting.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// check is a check that must be made.
func check(t *testing.T, db DB, component, schema string) Report {
	t.Helper()
	r, err := Check(bounded(t), db, component, schema)
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	return r
}
