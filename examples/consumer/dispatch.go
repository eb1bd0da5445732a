package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// dispatch delivers a batch of what the outbox has, and says how many records it claimed. What was sent and then not
// acknowledged is sent again: whoever receives it knows it by its event id, as this consumer does.
func (c *consumer) dispatch(ctx context.Context) (int, error) {
	records, err := c.store.Claim(ctx, c.pool, c.hold, c.batch)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, r := range records {
		if err := publish(ctx, c.pool, r.Topic, r.Key, r.EventID, r.Body); err != nil {
			later := time.Now().Add(time.Second << min(r.Attempts-1, 6))
			errs = append(errs, fmt.Errorf("send %s: %w", r.EventID, err), c.store.Retry(ctx, c.pool, r.Claim, later))
			continue
		}
		if err := c.store.Deliver(ctx, c.pool, r.Claim); err != nil {
			errs = append(errs, err)
			continue
		}
		c.delivered++
	}
	return len(records), errors.Join(errs...)
}
