package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/internal/pgserver"
)

// demo is one demo on its way.
type demo struct {
	*app
	rows   int
	config *pgxpool.Config // leads to the demo's own database
	ends   []func(context.Context) error
}

// start starts a server of the demo's own. It asks for a password, which nobody is told: other users of the machine are
// not to get at a superuser.
func (d *demo) start(ctx context.Context) error {
	d.out.tell("starting a throw-away PostgreSQL server; this takes some seconds")
	server, err := pgserver.Start(ctx, pgserver.Options{Download: true, Superuser: "demo", Password: rand.Text()})
	if err != nil {
		return err
	}
	d.ends = append(d.ends, func(context.Context) error { return server.Stop() })
	how, _, _ := strings.Cut(server.How, " in ") // without the folder
	d.out.tell("PostgreSQL %s on 127.0.0.1:%d as demo, from %s", server.Version, server.Port, how)
	d.config, err = parseDSN("the demo's own", server.DSN("postgres"))
	return err
}

// borrow makes a database of the demo's own on somebody's server.
func (d *demo) borrow(ctx context.Context, keep bool) error {
	config, err := parseDSN("--dsn", d.app.dsn.v)
	if err != nil {
		return err
	}
	name := "prunectl_demo_" + strings.ToLower(rand.Text()[:8])
	create := "CREATE DATABASE " + pgx.Identifier{name}.Sanitize() + " TEMPLATE template0"
	drop := "DROP DATABASE IF EXISTS " + pgx.Identifier{name}.Sanitize() + " WITH (FORCE)"
	d.ends = append(d.ends, func(ctx context.Context) error {
		if keep {
			d.out.tell("database %s is kept; when you have seen enough: DROP DATABASE %s", name, name)
			return nil
		}
		return execOn(ctx, config, drop)
	})
	if err := execOn(ctx, config, create); err != nil {
		keep = false
		return err
	}
	d.out.tell("database %s on %s:%d as %s", name, config.ConnConfig.Host, config.ConnConfig.Port, config.ConnConfig.User)
	d.config = config.Copy()
	d.config.ConnConfig.Database = name
	return nil
}

// execOn runs one statement on a connection of its own.
func execOn(ctx context.Context, config *pgxpool.Config, sql string) error {
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return connectError(config.ConnConfig, err)
	}
	_, err = conn.Exec(ctx, sql)
	if e := conn.Close(ctx); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}
