package main

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/migrations"
)

//go:embed shop.sql
var shop string

// setup creates the tables of the component, as `prunectl migrate up --component domain_events` does, and those of the
// shop. It can be repeated.
func setup(ctx context.Context, pool *pgxpool.Pool) error {
	m, err := migrations.New(pool.Config().ConnConfig, migrations.Options{Component: "domain_events"})
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	applied, err := m.Up(ctx)
	for _, v := range applied {
		fmt.Printf("domain_events: %s\n", v.Version)
	}
	if err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, shop); err != nil {
		return fmt.Errorf("create the tables of the shop: %w", err)
	}
	return nil
}
