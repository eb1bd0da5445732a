package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const what = `
SELECT e.type,
       coalesce(e.retention_policy, e.retention_seconds || 's', 'default'),
       count(DISTINCT e.id),
       count(d.id) FILTER (WHERE d.status IN ('pending', 'claimed', 'failed')),
       count(d.id) FILTER (WHERE d.status = 'succeeded'),
       count(d.id) FILTER (WHERE d.status IN ('dead', 'orphaned'))
  FROM domain_events e
  LEFT JOIN domain_event_deliveries d ON d.event_id = e.id
 GROUP BY 1, 2
 ORDER BY 1, 2`

// show counts the events that are there and their deliveries.
func show(ctx context.Context, pool *pgxpool.Pool, to io.Writer) error {
	rows, err := pool.Query(ctx, what) //nolint:rowserrcheck // pgx.ForEachRow returns it
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "EVENT\tRETENTION\tEVENTS\tOWED\tSUCCEEDED\tDEAD")
	var (
		kind, kept                    string
		events, owed, succeeded, dead int
	)
	if _, err := pgx.ForEachRow(rows, []any{&kind, &kept, &events, &owed, &succeeded, &dead}, func() error {
		_, err := fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\n", kind, kept, events, owed, succeeded, dead)
		return err
	}); err != nil {
		return err
	}
	return t.Flush()
}
