package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/migrations"
)

//go:embed bank.sql
var bank string

// setup creates the tables of the component, as `prunectl migrate up --component inbox_outbox` does, and those of the
// bank and its broker. It can be repeated, and it is the only thing here that changes a schema.
func setup(ctx context.Context, pool *pgxpool.Pool, schema string, to io.Writer) error {
	m, err := migrations.New(pool.Config().ConnConfig, migrations.Options{Component: component, Schema: schema})
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	applied, err := m.Up(ctx)
	for _, v := range applied {
		again := ""
		if v.Rebuilt {
			again = ", made again"
		}
		fmt.Fprintf(to, "%s: %s%s\n", component, v.Version, again)
	}
	if err != nil {
		return err
	}
	if len(applied) == 0 {
		fmt.Fprintf(to, "%s: nothing to do\n", component)
	}
	if _, err := pool.Exec(ctx, bank); err != nil {
		return fmt.Errorf("create the tables of the bank: %w", err)
	}
	return nil
}
