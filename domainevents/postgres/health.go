package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/domainevents"
)

// MaxHealth is the highest bound of Health.
const MaxHealth = 100_000

// Health counts what is owed, dead, lapsed, parked and of unknown policies, each through
// an index and up to bound. The error is [domainevents.ErrLimit] where bound is not from
// 1 to MaxHealth.
func (s *Store) Health(ctx context.Context, db DB, bound int) (domainevents.Health, error) {
	none := domainevents.Health{}
	if bound < 1 || bound > MaxHealth {
		return none, fmt.Errorf("health up to %d: %w; it is from 1 to %d", bound, domainevents.ErrLimit, MaxHealth)
	}
	count := func(n int) domainevents.Count { return domainevents.Count{N: min(n, bound), AtLeast: n > bound} }
	var (
		owed, dead, lapsed, parked int
		oldest                     *time.Time
	)
	err := db.QueryRow(ctx, s.text.counts, int64(bound)+1).Scan(&owed, &oldest, &dead, &lapsed, &parked)
	if err != nil {
		return none, fmt.Errorf("health of deliveries: %w", err)
	}
	h := domainevents.Health{Owed: count(owed), Dead: count(dead), Lapsed: count(lapsed), Parked: count(parked), Unknown: map[domainevents.Policy]int{}}
	if oldest != nil {
		h.OldestOwed = oldest.UTC()
	}
	rows, err := db.Query(ctx, s.text.words, int64(bound)+1) //nolint:rowserrcheck // pgx.ForEachRow returns it
	if err != nil {
		return none, fmt.Errorf("count events of unknown policies: %w", err)
	}
	var (
		word     string
		n, total int
	)
	_, err = pgx.ForEachRow(rows, []any{&word, &n}, func() error {
		h.Unknown[domainevents.Policy(word)] = n
		total += n
		return nil
	})
	h.UnknownAtLeast = total > bound
	if err != nil {
		return none, fmt.Errorf("count events of unknown policies: %w", err)
	}
	return h, nil
}

// Quiet returns the receivers whose newest success is before since, the longest quiet
// first: the later of what is remembered and of the deliveries that are there. A receiver
// that never had a success is not among them.
func (s *Store) Quiet(ctx context.Context, db DB, since time.Time) ([]domainevents.Receiver, error) {
	rows, err := db.Query(ctx, s.text.quiet, since)
	if err != nil {
		return nil, fmt.Errorf("look for quiet receivers: %w", err)
	}
	quiet, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r domainevents.Receiver, err error) {
		err = row.Scan(&r.Name, &r.LastSuccess)
		r.LastSuccess = r.LastSuccess.UTC()
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("look for quiet receivers: %w", err)
	}
	return quiet, nil
}
