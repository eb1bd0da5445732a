package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/domainevents"
)

// Requeue makes dead letters pending again, those of the oldest events first, in one
// transaction of its own: at most f.Limit deliveries. They are due at once and begin with
// no attempts; what their last error was stays.
//
// Their events are locked first, in the order of their ids, as the sweep does: what is
// returned is there after the transaction and owed, and an event that the sweep took first
// is returned as gone. Repeat it until it returns nothing. Beside an error
// nothing was reopened, but for a connection that is lost during the commit.
//
// The error is [domainevents.ErrLimit] where the limit is not from 1 to
// [domainevents.MaxRequeue], or [domainevents.ErrConflict].
func (s *Store) Requeue(ctx context.Context, db Beginner, f domainevents.Filter) (domainevents.Requeued, error) {
	if f.Limit < 1 || f.Limit > domainevents.MaxRequeue {
		return domainevents.Requeued{}, fmt.Errorf("requeue %d dead letters: %w; it is from 1 to %d", f.Limit, domainevents.ErrLimit, domainevents.MaxRequeue)
	}
	var done domainevents.Requeued
	err := inTransaction(ctx, db, func(tx pgx.Tx) error {
		held, gone, err := s.lock(ctx, tx, f)
		if err != nil {
			return err
		}
		slices.Sort(gone)
		done.Gone = gone
		if len(held) == 0 {
			return nil
		}
		rows, err := tx.Query(ctx, s.text.reopenDead, held, orNone(f.Receiver), int64(f.Limit))
		if err != nil {
			return err
		}
		done.Reopened, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r domainevents.Reopened, err error) {
			return r, row.Scan(&r.Event, &r.Delivery, &r.Receiver, &r.Target)
		})
		slices.SortFunc(done.Reopened, func(a, b domainevents.Reopened) int {
			return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Receiver, b.Receiver), cmp.Compare(a.Target, b.Target))
		})
		return err
	})
	if err != nil {
		return domainevents.Requeued{}, fmt.Errorf("requeue dead letters: %w", meaning(err))
	}
	return done, nil
}

// lock locks the events that a filter chooses, in one statement.
func (s *Store) lock(ctx context.Context, tx pgx.Tx, f domainevents.Filter) (held, gone []int64, err error) {
	if f.Event != 0 {
		kind, there, err := s.lockOne(ctx, tx, f.Event)
		switch {
		case err != nil:
			return nil, nil, err
		case !there:
			return nil, []int64{f.Event}, nil
		case f.Type != "" && f.Type != kind:
			return nil, nil, nil
		}
		return []int64{f.Event}, nil, nil
	}
	if _, err := tx.Exec(ctx, s.text.inOrder); err != nil {
		return nil, nil, err
	}
	text := s.text.lockDead
	if f.Receiver != "" {
		text = s.text.lockDeadOf
	}
	rows, err := tx.Query(ctx, text, orNone(f.Receiver), orNone(f.Type), int64(f.Limit)) //nolint:rowserrcheck // pgx.ForEachRow returns it
	if err != nil {
		return nil, nil, err
	}
	var (
		id    int64
		there bool
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &there}, func() error {
		if there {
			held = append(held, id)
		} else {
			gone = append(gone, id)
		}
		return nil
	})
	return held, gone, err
}

func orNone(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// lockOne locks one event and returns its type.
func (s *Store) lockOne(ctx context.Context, tx pgx.Tx, event int64) (kind string, there bool, err error) {
	rows, err := tx.Query(ctx, s.text.lockEvent, event)
	if err != nil {
		return "", false, err
	}
	kinds, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(kinds) == 0 {
		return "", false, err
	}
	return kinds[0], true, nil
}

// Replay makes every delivery of an event pending again, those that succeeded too, in
// one transaction of its own, under the event's lock as with Requeue. A delivery that a
// worker has claimed is owed already and left to it. That a receiver had a success before is
// remembered.
//
// The error is [domainevents.ErrGone] where the event is not there, or
// [domainevents.ErrConflict]. An event with very many deliveries makes a long transaction.
func (s *Store) Replay(ctx context.Context, db Beginner, event int64) (domainevents.Replayed, error) {
	var done domainevents.Replayed
	err := inTransaction(ctx, db, func(tx pgx.Tx) error {
		_, there, err := s.lockOne(ctx, tx, event)
		if err != nil {
			return err
		}
		if !there {
			return domainevents.ErrGone
		}
		rows, err := tx.Query(ctx, s.text.reopenAll, event) //nolint:rowserrcheck // pgx.ForEachRow returns it
		if err != nil {
			return err
		}
		var (
			all              int
			id               *int64
			receiver, target *string
		)
		_, err = pgx.ForEachRow(rows, []any{&all, &id, &receiver, &target}, func() error {
			if id != nil {
				done.Reopened = append(done.Reopened, domainevents.Reopened{Event: event, Delivery: *id, Receiver: *receiver, Target: *target})
			}
			return nil
		})
		done.Underway = all - len(done.Reopened)
		return err
	})
	if err != nil {
		return domainevents.Replayed{}, fmt.Errorf("replay event %d: %w", event, meaning(err))
	}
	return done, nil
}

// inTransaction runs f in a transaction whose statements each see what was committed
// before them: the second one must see more than the first, which waits for locks.
func inTransaction(ctx context.Context, db Beginner, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, f)
}
