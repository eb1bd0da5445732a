package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	applicationName = "prunectl"
	connectTimeout  = 15 * time.Second
	maxConns        = 4 // a batch at a time, and what is asked beside it
)

// placeVariables say where the database is. One that is set but empty would lead to another place than was meant.
var placeVariables = []string{"PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE"}

// connConfig is how to connect: --dsn, else DATABASE_URL, else the PG* variables.
func (a *app) connConfig() (*pgxpool.Config, error) {
	dsn, err := a.setting(a.dsn, "DATABASE_URL", "")
	if err != nil {
		return nil, err
	}
	source := "--dsn"
	if !a.dsn.set {
		source = "DATABASE_URL"
	}
	if dsn == "" {
		source = "the PG* variables"
		for _, name := range placeVariables {
			if v, set := a.env(name); set && v == "" {
				return nil, usagef("%s is set but empty; give it a value or unset it", name)
			}
		}
	}
	return parseDSN(source, dsn)
}

// parseDSN reads a connection string. No part of one that cannot be read is repeated: where its password begins is then
// anybody's guess.
func parseDSN(source, dsn string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, usagef("%s cannot be read%s; write postgres://user:password@host:5432/database, with %%-codes for special characters in the password, or host=... dbname=...",
			source, readFault(dsn, err))
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = applicationName
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	// Named prepared statements do not survive a pooler in transaction mode, so none are made.
	switch config.ConnConfig.DefaultQueryExecMode {
	case pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe:
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	config.MaxConns = min(config.MaxConns, maxConns)
	config.MinConns = 0
	return config, nil
}

// faults of a connection string that can be named without repeating any of it.
var faults = regexp.MustCompile(`invalid (connect_timeout|port|sslmode|sslcertmode|sslnegotiation|target_session_attrs|channel_binding|require_auth|default_query_exec_mode|pool_[a-z_]+|` +
	`(?:min|max)_protocol_version)|failed to (?:configure TLS|read service|look up|load)|unable to (?:read|find|add|parse) [a-z ]+`)

func readFault(dsn string, err error) string {
	if strings.Contains(dsn, "://") {
		if _, e := url.Parse(dsn); e != nil {
			return " as a URL"
		}
	}
	// The text in front of the reason repeats the connection string.
	text := err.Error()
	if i := strings.LastIndex(text, "`: "); i >= 0 {
		text = text[i+3:]
	}
	if m := faults.FindString(text); m != "" {
		return ": " + m
	}
	return ""
}

// dial connects, and fails with the place and the reason where there is no server.
func dial(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, connectError(config.ConnConfig, err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, connectError(config.ConnConfig, err)
	}
	return pool, nil
}

// connectError says where no connection came about and why, on one line.
func connectError(c *pgx.ConnConfig, err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("connect to %s: %w", place(c), context.Canceled)
	}
	reason := err.Error()
	var ce *pgconn.ConnectError
	if errors.As(err, &ce) && ce.Unwrap() != nil {
		reason = ce.Unwrap().Error()
	}
	var lines []string
	for line := range strings.Lines(reason) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return fmt.Errorf("cannot connect to %s: %s", place(c), printable(strings.Join(lines, ", ")))
}

// place is where a connection leads, without its password.
func place(c *pgx.ConnConfig) string {
	return fmt.Sprintf("database %s on %s:%d as %s", c.Database, c.Host, c.Port, c.User)
}
