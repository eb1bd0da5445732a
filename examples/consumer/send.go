package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/inboxoutbox/retention"
	"github.com/prunectl/prunectl/policy"
)

// payment is the body of the messages on the topic payments.
type payment struct {
	Account string `json:"account"`
	Amount  int64  `json:"amount"`
	Shy     bool   `json:"shy,omitempty"` // fails at the first attempt
}

// send lets n payments come in from other banks. A sender that had no answer sends again, and of one in five that is so:
// the same event, in two messages. One in fifty is for an account that is not open, so that it can not be booked, and one
// in forty fails when it is tried first.
func send(ctx context.Context, pool *pgxpool.Pool, n int, to io.Writer) error {
	open := []string{"ada", "ben", "cleo", "dan", "eve", "finn", "gus"}
	messages := 0
	for i := range n {
		p := payment{Account: open[i%len(open)], Amount: int64(1 + i%100), Shy: i%40 == 3}
		if i%50 == 1 {
			p.Account = "hal"
		}
		body, err := json.Marshal(p)
		if err != nil {
			return err
		}
		times := 1
		if i%5 == 0 {
			times = 2
		}
		for event := "payment-" + rand.Text(); times > 0; times-- {
			if err := publish(ctx, pool, "payments", p.Account, event, body); err != nil {
				return fmt.Errorf("send payment %d of %d: %w", i+1, n, err)
			}
			messages++
		}
	}
	fmt.Fprintf(to, "%d payments sent in %d messages\n", n, messages)
	return nil
}

// replay sends again, as new messages, all payments that were sent first since then. How far back that may reach is not for
// whoever does it to say: an event that the inbox has forgotten would be booked again. So the policy that is recorded is asked.
func replay(ctx context.Context, pool *pgxpool.Pool, schema string, since time.Duration, to io.Writer) error {
	p, ok, err := retention.ReadPolicy(ctx, pool, schema)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("replay %s: no policy is recorded yet, so nobody knows how far back is safe; a consumer records it when it starts", policy.FormatDuration(since))
	}
	declared := p.Fields.Settings().Replay
	if back := declared.Manual - declared.Redelivery; since > back {
		return fmt.Errorf("replay %s: the policy allows for no more than %s: events come again by hand for up to %s, and the broker's redelivery of %s comes after the replay; "+
			"what is older may be forgotten, and would be booked again",
			policy.FormatDuration(since), policy.FormatDuration(max(back, 0)), policy.FormatDuration(declared.Manual), policy.FormatDuration(declared.Redelivery))
	}
	tag, err := pool.Exec(ctx, `
INSERT INTO broker (topic, partition, event_id, body, event_at)
SELECT DISTINCT ON (event_id) topic, partition, event_id, body, event_at
  FROM broker
 WHERE topic = 'payments' AND event_at > now() - $1::interval
 ORDER BY event_id, id`, since)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	fmt.Fprintf(to, "%d payments sent again\n", tag.RowsAffected())
	return nil
}
