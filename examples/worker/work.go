package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/domainevents"
	events "github.com/prunectl/prunectl/domainevents/postgres"
	"github.com/prunectl/prunectl/drain"
)

// worker makes deliveries, and sweeps when there are none.
type worker struct {
	settings
	pool  *pgxpool.Pool
	store *events.Store
	loop  *drain.Loop
	stop  <-chan struct{}
}

func newWorker(ctx context.Context, pool *pgxpool.Pool, s settings, stop <-chan struct{}) (*worker, error) {
	loop, err := newLoop(ctx, pool, s, stop)
	if err != nil {
		return nil, err
	}
	return &worker{settings: s, pool: pool, store: events.New(events.Options{}), loop: loop, stop: stop}, nil
}

// run works until it is stopped. What fails is logged and tried again: a database that is away comes back.
func (w *worker) run(ctx context.Context) {
	log.Printf("%s is at work", w.name)
	for !w.stopped() {
		n, err := w.work(ctx)
		if err != nil {
			log.Print(err)
		}
		if n > 0 {
			continue
		}
		w.sweepIfDue(ctx)
		select {
		case <-w.stop:
		case <-time.After(w.poll):
		}
	}
	log.Printf("%s has ended", w.name)
}

func (w *worker) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// work claims a batch of deliveries, makes them, and says how many it claimed. A stop does not end it: the batch is small.
func (w *worker) work(ctx context.Context) (int, error) {
	claimed, err := w.store.Claim(ctx, w.pool, w.name, w.lease, w.batch)
	if err != nil {
		return 0, err
	}
	for _, d := range claimed {
		// An acknowledgement that fails loses nothing: the lease lapses, and the delivery is claimed again.
		if err := w.deliver(ctx, d); err != nil {
			log.Printf("%s to %s: %v", d.Event.Type, d.Receiver, err)
		}
	}
	return len(claimed), nil
}

// Attempts are made further and further apart, and not for ever.
const (
	attempts = 5
	pause    = time.Second
)

// deliver makes one delivery. What is done in this database is committed together with the acknowledgement, so it is done
// once, whatever happens to the worker; what is done elsewhere may be done again, and needs a key by which it is known there.
func (w *worker) deliver(ctx context.Context, d domainevents.Delivery) error {
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if err := handle(ctx, tx, d); err != nil {
			return err
		}
		return w.store.Succeed(ctx, tx, d.Claim)
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, domainevents.ErrClaimLost):
		return err // it is another worker's, and what was done here is undone
	case errors.Is(err, errHopeless), d.Attempts >= attempts:
		return w.store.Dead(ctx, w.pool, d.Claim, err.Error())
	}
	return w.store.Fail(ctx, w.pool, d.Claim, d.Claim.At.Add(pause<<(d.Attempts-1)), err.Error())
}

// errHopeless says that no repetition helps.
var errHopeless = errors.New("no repetition helps")

// handle is what the receivers do.
func handle(ctx context.Context, tx pgx.Tx, d domainevents.Delivery) error {
	var h happened
	if err := json.Unmarshal(d.Event.Payload, &h); err != nil {
		return fmt.Errorf("%w: read the payload: %w", errHopeless, err)
	}
	switch {
	case h.NoAddress && d.Receiver == "mail":
		return fmt.Errorf("%w: order %d has no address", errHopeless, h.Order)
	case h.Shy && d.Attempts == 1:
		return errors.New("not at the first attempt")
	}
	_, err := tx.Exec(ctx, `INSERT INTO work_done (event_id, receiver) VALUES ($1, $2)`, d.Event.ID, d.Receiver)
	return err
}
