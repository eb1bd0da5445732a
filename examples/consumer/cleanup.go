package main

import (
	"context"
	"log"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/inboxoutbox/retention"
)

// cleanup removes what the policy lets go, in bounded batches, and logs the report. Of several consumers one sweeps a
// ledger, and the others report that they found it busy. A stop ends it after the batch in hand.
func (c *consumer) cleanup(ctx context.Context) (int, error) {
	report, err := retention.Cleanup(ctx, c.pool, c.policy, retention.CleanupOptions{
		Schema: c.schema, By: c.name, Drain: drain.Options{Stop: c.stop},
	})
	if len(report.Ledgers) > 0 {
		log.Printf("cleanup: %s", report)
	}
	return 0, err
}
