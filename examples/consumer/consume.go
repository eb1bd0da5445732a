package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/inboxoutbox"
)

// consume takes what waits at the broker, partition by partition, and says how many messages it took.
func (c *consumer) consume(ctx context.Context) (int, error) {
	waiting, err := c.broker.waiting(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask the broker: %w", err)
	}
	n := 0
	for _, p := range waiting {
		if c.stopped() {
			break
		}
		took, err := c.partition(ctx, p)
		n += took
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// partition handles a batch of one partition's messages, alone: a lease keeps other consumers out, so that the payments of
// one account are booked in their order while all goes well. That each is booked once does not depend on it.
func (c *consumer) partition(ctx context.Context, p int) (n int, err error) {
	lease, ok, err := c.store.Acquire(ctx, c.pool, "bank", strconv.Itoa(p), c.name, c.hold)
	if err != nil || !ok {
		return 0, err
	}
	defer func() {
		if e := c.store.Return(ctx, c.pool, lease); !errors.Is(e, inboxoutbox.ErrClaimLost) {
			err = errors.Join(err, e)
		}
	}()
	messages, err := c.broker.take(ctx, p, c.batch)
	if err != nil {
		return 0, fmt.Errorf("take messages of partition %d: %w", p, err)
	}
	renewed := time.Now()
	var failed []error
	defer func() {
		if len(failed) > 0 {
			log.Printf("partition %d: %d of %d messages come again: %v", p, len(failed), n, failed[0])
		}
	}()
	for _, m := range messages {
		if time.Since(renewed) > c.hold/2 {
			// Lost: what is left of the batch is delivered again, to whoever has the partition then.
			if lease, err = c.store.Renew(ctx, c.pool, lease, c.hold); err != nil {
				return n, err
			}
			renewed = time.Now()
		}
		n++
		if err := c.receive(ctx, m); err != nil {
			failed = append(failed, fmt.Errorf("%s, delivery %d: %w", m.eventID, m.delivery, err))
		}
	}
	return n, nil
}

// receive handles one delivery of a message: once, however many there are. The message is acknowledged after the commit, so
// a consumer that dies in between is delivered it again, and finds that it was handled. An error loses nothing: what is not
// acknowledged is delivered again.
func (c *consumer) receive(ctx context.Context, m message) error {
	h, ok := c.handlers()[m.topic]
	if !ok {
		return fmt.Errorf("nobody handles topic %q", m.topic)
	}
	receipt, err := c.store.Receive(ctx, c.pool, h.name, m.eventID, c.hold)
	if err != nil {
		return err
	}
	switch receipt.Outcome {
	case inboxoutbox.CompletedBefore:
		c.repeated++
		return c.broker.ack(ctx, m)
	case inboxoutbox.InProgress: // by somebody else, or by one who died: then the lock lapses
		return c.broker.putOff(ctx, m, time.Until(receipt.Until))
	}
	err = pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		if err := h.do(ctx, tx, m, receipt); err != nil {
			return err
		}
		return c.store.Complete(ctx, tx, receipt.Lock)
	})
	if err == nil {
		c.handled++
		return c.broker.ack(ctx, m)
	}
	if errors.Is(err, inboxoutbox.ErrClaimLost) {
		return err // it is another consumer's, and what was done here is undone
	}
	// The event stays in the inbox as unfinished, and is tried again further and further apart.
	return errors.Join(err, c.store.Release(ctx, c.pool, receipt.Lock), c.broker.putOff(ctx, m, time.Second<<min(m.delivery-1, 6)))
}
