package torture

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// owners is the owner form. Users lock events in the order of their ids, and wait for no event while they hold a run.
//
// Some take the locks in the order opposite to the sweep's, an event first and then its run. They have events of their own
// for that, which others do not wait for: several sweepers without the lock of one sweeper can share a run in turns, and
// keep such a user waiting for long. Who waits for that user, and is in the way of one of the sweepers, would then be found in
// a deadlock before the sweep gives way.
func owners(runs, events string, ledger bool) *family {
	q := tables("{runs}", runs, "{events}", events, "{terminal}", "'completed', 'failed', 'cancelled'")
	// Some of the oldest due events, which the sweeps are at too, locked in the order of their ids.
	choose := func(which string) string {
		return q(`
WITH due AS MATERIALIZED (
  SELECT e.id FROM {events} e
   WHERE e.created_at < now() - interval '2 s' AND e.created_at >= '1990-01-01' AND e.id % 16 ` + which + ` 5
   ORDER BY e.created_at OFFSET $1 LIMIT $2
), chosen AS MATERIALIZED (
  SELECT e.id FROM {events} e WHERE e.id = ANY (ARRAY(SELECT d.id FROM due d)) ORDER BY e.id FOR UPDATE
)`)
	}
	chosen, backwards := choose("<>"), choose("=")
	// The run of one of the oldest due events.
	anyRun := q(`
SELECT e.run_id FROM {events} e JOIN {runs} r ON r.id = e.run_id
 WHERE e.created_at < now() - interval '2 s' AND e.created_at >= '1990-01-01'
 ORDER BY e.created_at OFFSET $1 LIMIT 1`)

	write := func(ctx context.Context, u *user) error {
		if u.full() {
			return nil
		}
		n := u.between(5, 60)
		if u.one(20) {
			n = u.between(300, 1500)
		}
		status := []string{"running", "running", "queued", "odd", "completed", "completed", "completed", "failed", "failed", "cancelled"}[u.rand.IntN(10)]
		return u.exec(ctx, q(`
WITH run AS (INSERT INTO {runs} (status) VALUES ($1) RETURNING id)
INSERT INTO {events} (run_id, created_at, kind)
SELECT r.id, now() - ($3::float8 + $4::float8 * g) * interval '1 ms', CASE WHEN (r.id + g) % 250 = 0 THEN 'pinned' ELSE 'log' END
  FROM run r, generate_series(1, $2::int) g`),
			func(n int64) done { return done{inserted: n + 1, rows: n} }, status, n, u.back(), u.step())
	}
	// Rows that no sweep may take: without a run, of a run that never was, and without a usable age.
	stray := func(ctx context.Context, u *user) error {
		return u.exec(ctx, q(`
INSERT INTO {events} (run_id, created_at)
SELECT x.run, x.at
  FROM (SELECT max(r.id) AS id FROM {runs} r WHERE r.status IN ({terminal})) r,
       LATERAL (VALUES (NULL::bigint, now() - interval '3 s'), (-1, now() - interval '3 s'),
                       (r.id, '-infinity'), (r.id, '1980-01-01'), (r.id, 'infinity')) x (run, at)`),
			func(n int64) done { return done{inserted: n, rows: n} })
	}
	finish := func(ctx context.Context, u *user) error {
		return u.exec(ctx, q(`
WITH live AS MATERIALIZED (
  SELECT r.id FROM {runs} r WHERE r.status NOT IN ({terminal}) AND r.id % 3 = $1 ORDER BY r.id LIMIT 30 FOR UPDATE SKIP LOCKED)
UPDATE {runs} r SET status = (ARRAY[{terminal}])[1 + r.id % 3] FROM live l WHERE r.id = l.id`), updated, u.rand.IntN(3))
	}
	// As real programs do: the run first, then what it has to say.
	reopen := func(ctx context.Context, u *user) error {
		return u.tx(ctx, func(tx pgx.Tx) (done, error) {
			run, ok, err := picked(ctx, tx, anyRun, u.between(0, 400))
			if err != nil || !ok {
				return done{}, err
			}
			tag, err := tx.Exec(ctx, q(`UPDATE {runs} SET status = 'running' WHERE id = $1 AND status IN ({terminal})`), run)
			if err != nil || tag.RowsAffected() == 0 {
				return done{}, err
			}
			if u.one(4) {
				u.world.pause(time.Duration(u.between(1, 20)) * time.Millisecond)
			}
			n := u.between(0, 3)
			if _, err := tx.Exec(ctx, q(`INSERT INTO {events} (run_id, created_at) SELECT $1, now() FROM generate_series(1, $2::int)`), run, n); err != nil {
				return done{}, err
			}
			if u.one(10) {
				return done{}, errBack
			}
			return done{inserted: int64(n), updated: 1, rows: int64(n)}, nil
		})
	}
	touch := func(ctx context.Context, u *user) error {
		return u.exec(ctx, chosen+q(` UPDATE {events} e SET touched = e.touched + 1 FROM chosen c WHERE e.id = c.id`), updated, u.between(0, 300), u.between(1, 30))
	}
	age := func(ctx context.Context, u *user) error {
		return u.exec(ctx, chosen+q(` UPDATE {events} e SET created_at = e.created_at + $3 * interval '1 ms' FROM chosen c WHERE e.id = c.id`),
			updated, u.between(0, 300), u.between(1, 30), u.between(-3000, 8000))
	}
	rehome := func(ctx context.Context, u *user) error {
		return u.exec(ctx, chosen+q(`
UPDATE {events} e SET run_id = coalesce((SELECT max(r.id) FROM {runs} r WHERE r.status NOT IN ({terminal})), e.run_id)
  FROM chosen c WHERE e.id = c.id`), updated, u.between(0, 300), u.between(1, 10))
	}
	deleter := func(ctx context.Context, u *user) error {
		return u.exec(ctx, chosen+q(` DELETE FROM {events} e USING chosen c, {runs} r WHERE e.id = c.id AND r.id = e.run_id AND r.status IN ({terminal})`),
			deleted, u.between(0, 300), u.between(1, 40))
	}
	// The rows that have been there for longest, whatever they are: else what every sweep keeps would only grow. It waits for
	// nobody.
	rude := func(ctx context.Context, u *user) error {
		n := u.between(1, 20)
		if u.full() {
			n *= 20
		}
		return u.exec(ctx, q(`
WITH chosen AS MATERIALIZED (SELECT e.id FROM {events} e ORDER BY e.id LIMIT $1 FOR UPDATE SKIP LOCKED)
DELETE FROM {events} e USING chosen c WHERE e.id = c.id`), deleted, n)
	}
	// The order opposite to the sweep's: an event first, then its run.
	backward := func(ctx context.Context, u *user) error {
		return u.tx(ctx, func(tx pgx.Tx) (done, error) {
			run, ok, err := picked(ctx, tx, backwards+q(` UPDATE {events} e SET touched = e.touched + 1 FROM chosen c WHERE e.id = c.id RETURNING coalesce(e.run_id, -1)`),
				u.between(0, 20), 1)
			if err != nil || !ok {
				return done{}, err
			}
			if u.one(2) {
				u.world.pause(time.Duration(u.between(1, 20)) * time.Millisecond)
			}
			sql := q(`UPDATE {runs} SET touched = touched + 1 WHERE id = $1`)
			if u.one(2) {
				sql = q(`UPDATE {runs} SET status = 'running' WHERE id = $1`)
			}
			tag, err := tx.Exec(ctx, sql, run)
			return done{updated: 1 + tag.RowsAffected()}, err
		})
	}
	drop := func(ctx context.Context, u *user) error {
		return u.tx(ctx, func(tx pgx.Tx) (done, error) {
			run, ok, err := picked(ctx, tx, anyRun, u.between(0, 400))
			if err != nil || !ok {
				return done{}, err
			}
			tag, err := tx.Exec(ctx, q(`DELETE FROM {runs} WHERE id = $1 AND status IN ({terminal})`), run)
			return done{deleted: tag.RowsAffected()}, err
		})
	}
	past := q(`FROM {events} e LEFT JOIN {runs} r ON r.id = e.run_id
 WHERE e.created_at < $1::timestamptz - interval '2 s' AND e.created_at >= '1990-01-01 00:00+00' AND e.kind `)
	return &family{
		name: events, ledger: ledger, cap: 8000,
		acts: []act{
			{"write", 30, write}, {"stray", 1, stray}, {"finish", 12, finish}, {"reopen", 20, reopen}, {"touch", 8, touch}, {"age", 8, age},
			{"rehome", 3, rehome}, {"delete", 4, deleter}, {"rude", 2, rude}, {"backward", 6, backward}, {"drop", 1, drop},
		},
		holds: []act{
			{"rest", 6, rest}, {"snapshot", 1, snapshot},
			{"hold events", 3, func(ctx context.Context, u *user) error {
				return u.hold(ctx, chosen+` SELECT FROM chosen`, u.between(0, 200), u.between(1, 5))
			}},
			{"hold runs", 2, func(ctx context.Context, u *user) error {
				lock := []string{"FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE", "FOR KEY SHARE"}[u.rand.IntN(4)]
				return u.hold(ctx, q(`SELECT FROM {runs} r WHERE r.id = (`)+anyRun+`) `+lock, u.between(0, 200))
			}},
		},
		due: past + `<> 'pinned' AND r.status IN ('completed', 'failed', 'cancelled')`,
		kept: []kept{
			{"held", past + `<> 'pinned' AND r.status NOT IN ('completed', 'failed', 'cancelled')`},
			{"orphan", past + `<> 'pinned' AND r.id IS NULL`},
			{"outside", past + `= 'pinned'`},
		},
	}
}
