package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/inboxoutbox"
)

// show counts what is there.
func show(ctx context.Context, pool *pgxpool.Pool, schema string, to io.Writer) error {
	table := func(name string) string {
		return pgx.Identifier{cmp.Or(schema, inboxoutbox.DefaultSchema), name}.Sanitize()
	}
	//nolint:rowserrcheck // pgx.ForEachRow returns it
	rows, err := pool.Query(ctx, `
SELECT 'payments sent', count(DISTINCT event_id) FROM broker WHERE topic = 'payments'
UNION ALL SELECT 'messages about them', count(*) FROM broker WHERE topic = 'payments'
UNION ALL SELECT 'bookings', count(*) FROM bookings
UNION ALL SELECT 'receipts mailed', count(*) FROM mails
UNION ALL SELECT 'inbox: not finished', count(*) FROM `+table("inbox")+` WHERE state <> 'completed'
UNION ALL SELECT 'inbox: completed', count(*) FROM `+table("inbox")+` WHERE state = 'completed'
UNION ALL SELECT 'outbox: not delivered', count(*) FROM `+table("outbox")+` WHERE delivered_at IS NULL
UNION ALL SELECT 'outbox: delivered', count(*) FROM `+table("outbox")+` WHERE delivered_at IS NOT NULL`)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	var (
		what string
		n    int
	)
	if _, err := pgx.ForEachRow(rows, []any{&what, &n}, func() error {
		_, err := fmt.Fprintf(t, "%s\t%d\n", what, n)
		return err
	}); err != nil {
		return err
	}
	return t.Flush()
}
