package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/domainevents"
	events "github.com/prunectl/prunectl/domainevents/postgres"
	"github.com/prunectl/prunectl/policy"
)

// briefly is the window of events that are of no use a moment later.
var briefly, _ = domainevents.KeepFor(policy.MustWindow(time.Second))

// what can happen in the shop: who is told of it, and how long it is kept after that.
var kinds = []struct {
	draft   domainevents.Draft
	targets []domainevents.Target
}{
	// Gone as soon as both have done their work; a dead letter keeps it.
	{domainevents.Draft{Type: "order.placed", Retention: domainevents.UntilSucceeded}, to("mail", "stock")},
	// Gone as soon as it is settled, in whatever way.
	{domainevents.Draft{Type: "cart.left", Retention: domainevents.UntilSettled}, to("mail")},
	// Kept for the default window.
	{domainevents.Draft{Type: "invoice.issued"}, to("ledger")},
	// Kept for a window of its own.
	{domainevents.Draft{Type: "price.changed", Retention: briefly}, to("stock")},
}

func to(receivers ...string) (all []domainevents.Target) {
	for _, r := range receivers {
		all = append(all, domainevents.Target{Receiver: r})
	}
	return all
}

// record lets n things happen in the shop, each with its event in the same transaction.
func record(ctx context.Context, pool *pgxpool.Pool, n int) error {
	store := events.New(events.Options{})
	for i := range n {
		kind := kinds[i%len(kinds)]
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			var order int64
			if err := tx.QueryRow(ctx, `INSERT INTO orders DEFAULT VALUES RETURNING id`).Scan(&order); err != nil {
				return err
			}
			draft := kind.draft
			var err error
			// Some cannot be reached at all, and some only when it is tried again: see handle.
			if draft.Payload, err = json.Marshal(happened{Order: order, NoAddress: i%50 < 2, Shy: i%7 == 0}); err != nil {
				return err
			}
			_, err = store.Record(ctx, tx, draft, kind.targets...)
			return err
		})
		if err != nil {
			return fmt.Errorf("record event %d of %d: %w", i+1, n, err)
		}
	}
	fmt.Printf("%d events recorded\n", n)
	return nil
}

// happened is the payload of the shop's events.
type happened struct {
	Order     int64 `json:"order"`
	NoAddress bool  `json:"no_address,omitempty"`
	Shy       bool  `json:"shy,omitempty"`
}
