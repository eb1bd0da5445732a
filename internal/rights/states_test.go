package rights

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/migrations"
)

// theirs are tables as users have them, each with rows that are due and rows that are kept.
var theirs = pgtest.NewTemplate("rights", theirTables)

func theirTables(ctx context.Context, dsn string) error {
	return script(ctx, dsn, `
CREATE TABLE jobs (id bigint PRIMARY KEY, state text NOT NULL, finished_at timestamptz, expires_at timestamptz, keep_seconds int, held boolean, payload text);
CREATE INDEX jobs_age ON jobs (finished_at, id);
CREATE INDEX jobs_expiry ON jobs (expires_at, id);
CREATE INDEX jobs_own ON jobs ((((finished_at AT TIME ZONE 'UTC') + keep_seconds * interval '1 second') AT TIME ZONE 'UTC'), id) WHERE keep_seconds IS NOT NULL;
INSERT INTO jobs SELECT g, 'done', now() - interval '90 days', now() - interval '9 days', CASE WHEN g = 3 THEN 3600 END FROM generate_series(1, 3) g;
INSERT INTO jobs VALUES (4, 'queued', NULL, NULL, NULL, true), (5, 'done', now(), now() + interval '1 day', 86400 * 365, true);

CREATE TABLE runs (id bigint PRIMARY KEY, status text NOT NULL, title text);
CREATE TABLE run_events (run_id bigint NOT NULL, seq int NOT NULL, created_at timestamptz NOT NULL, body text, PRIMARY KEY (run_id, seq));
CREATE INDEX run_events_age ON run_events (created_at, run_id, seq);
INSERT INTO runs VALUES (1, 'completed'), (2, 'running');
INSERT INTO run_events SELECT r, g, now() - interval '90 days' FROM generate_series(1, 2) r, generate_series(1, 3) g;

CREATE TABLE messages (id bigint PRIMARY KEY, sent_at timestamptz NOT NULL, body text);
CREATE INDEX messages_age ON messages (sent_at, id);
CREATE TABLE receipts (id bigint PRIMARY KEY, message_id bigint NOT NULL REFERENCES messages, status text NOT NULL, note text);
CREATE INDEX receipts_message ON receipts (message_id, id);
CREATE TABLE lines (message_id bigint NOT NULL REFERENCES messages, line int NOT NULL, body text, PRIMARY KEY (message_id, line));
INSERT INTO messages SELECT g, now() - interval '90 days' FROM generate_series(1, 4) g;

CREATE TABLE notes (tenant_id text NOT NULL, note int NOT NULL, body text, PRIMARY KEY (tenant_id, note));
CREATE TABLE orders (tenant_id text NOT NULL, id bigint PRIMARY KEY, body text);
CREATE INDEX orders_tenant ON orders (tenant_id, id);
CREATE TABLE order_lines (order_id bigint NOT NULL REFERENCES orders, line int NOT NULL, body text, PRIMARY KEY (order_id, line));
INSERT INTO notes SELECT t, g FROM unnest(ARRAY['acme', 'other']) t, generate_series(1, 3) g;
INSERT INTO orders SELECT t, n * 10 + g FROM unnest(ARRAY['acme', 'other']) WITH ORDINALITY x(t, n), generate_series(1, 3) g;
INSERT INTO order_lines SELECT id, l FROM orders, generate_series(1, 2) l;`)
}

// ours are the components of prunectl, with rows that are due.
var ours = pgtest.NewTemplate("rights_components", ourTables)

func ourTables(ctx context.Context, dsn string) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	for _, component := range []string{"domain_events", "inbox_outbox", "run_events"} {
		m, err := migrations.New(config, migrations.Options{Component: component})
		if err != nil {
			return err
		}
		if _, err = m.Up(ctx); err != nil {
			return err
		}
		if err := m.Close(); err != nil {
			return err
		}
	}
	return script(ctx, dsn, `
INSERT INTO domain_events (type, payload, retention_policy, recorded_at) SELECT 'paid', '{}', CASE WHEN g = 1 THEN 'SUCCEEDED' END, now() - interval '200 days' FROM generate_series(1, 3) g;
INSERT INTO domain_event_deliveries (event_id, receiver, target, status, attempts, finished_at) SELECT id, 'mail', 'eu', CASE WHEN id < 3 THEN 'dead' ELSE 'succeeded' END, 9, now() - interval '200 days' FROM domain_events;
INSERT INTO inbox_outbox.inbox (handler, event_id, state, completed_at) SELECT 'h', 'c' || d, 'completed', now() - d * interval '1 day' FROM generate_series(1, 30) d;
INSERT INTO inbox_outbox.outbox (event_id, topic, body, delivered_at) SELECT 'd' || d, 't', '{}', now() - d * interval '1 day' FROM generate_series(1, 30) d;
INSERT INTO inbox_outbox.leases VALUES ('h', 'p', 'w', gen_random_uuid(), now() - interval '1 hour')`)
}

// nothing is a database in which nothing is installed.
var nothing = pgtest.NewTemplate("rights_nothing", func(context.Context, string) error { return nil })

func script(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.PgConn().Exec(ctx, sql).Close()
}
