package torture

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// parents is the form with children. Among users the order of locks is: events in the order of their ids, then deliveries
// in that of theirs. Who works without the lock of the event, on loose ones, works on the deliveries of one event alone.
func parents() *family {
	const (
		open   = `status NOT IN ('delivered', 'dead')`
		oldest = `
SELECT e.id FROM events e
 WHERE e.recorded_at < now() - interval '2 s' AND e.recorded_at >= '1990-01-01' AND e.loose = $2
 ORDER BY e.recorded_at OFFSET $1 LIMIT 1`
		oldestOpen = `SELECT d.event_id FROM deliveries d WHERE d.status NOT IN ('delivered', 'dead') AND d.loose = $2 ORDER BY d.event_id OFFSET $1 LIMIT 1`
		chosen     = `
WITH due AS MATERIALIZED (
  SELECT e.id FROM events e
   WHERE e.recorded_at < now() - interval '2 s' AND e.recorded_at >= '1990-01-01'
   ORDER BY e.recorded_at OFFSET $1 LIMIT $2
), chosen AS MATERIALIZED (
  SELECT e.id FROM events e WHERE e.id = ANY (ARRAY(SELECT d.id FROM due d)) ORDER BY e.id FOR UPDATE
)`
	)
	// lock takes the lock of an event that a query picks; ok is false where it is gone by then.
	lock := func(ctx context.Context, tx pgx.Tx, how, pick string, args ...any) (id int64, ok bool, err error) {
		if id, ok, err = picked(ctx, tx, pick, args...); err != nil || !ok {
			return 0, false, err
		}
		return picked(ctx, tx, `SELECT e.id FROM events e WHERE e.id = $1 `+how, id)
	}
	write := func(ctx context.Context, u *user) error {
		if u.full() || u.family.kids.Load() > 4*u.family.cap {
			return nil
		}
		n, m, owed := u.between(1, 20), u.between(0, 6), 12
		if u.one(12) { // more deliveries than some limits, and than all
			n, m, owed = 1, []int{40, 300, 1500}[u.rand.IntN(3)], 4000
		}
		return u.tx(ctx, func(tx pgx.Tx) (done, error) {
			var events, deliveries, attempts int64
			err := tx.QueryRow(ctx, `
WITH e AS (
  INSERT INTO events (recorded_at, loose) SELECT now() - ($2::float8 + $3::float8 * g) * interval '1 ms', $4 FROM generate_series(1, $1::int) g RETURNING id, loose
), d AS (
  INSERT INTO deliveries (event_id, loose, status)
  SELECT e.id, e.loose, CASE WHEN (e.id * 7 + g) % $6::int = 0 THEN 'pending' WHEN g % 5 = 0 THEN 'dead' ELSE 'delivered' END
    FROM e, generate_series(1, $5::int) g RETURNING id
), a AS (
  INSERT INTO attempts (delivery_id) SELECT d.id FROM d, generate_series(1, 2) g WHERE d.id % 4 = 0 RETURNING 1
)
SELECT (SELECT count(*) FROM e), (SELECT count(*) FROM d), (SELECT count(*) FROM a)`,
				n, u.back(), u.step(), u.one(3), m, owed).Scan(&events, &deliveries, &attempts)
			return done{inserted: events + deliveries + attempts, rows: events, kids: deliveries + attempts}, err
		})
	}
	// settle lets go what is owed, for many events at once, under their locks.
	settle := func(ctx context.Context, u *user) error {
		return u.tx(ctx, func(tx pgx.Tx) (done, error) {
			var ids []int64
			err := tx.QueryRow(ctx, `
SELECT coalesce(array_agg(x.id), '{}')
  FROM (SELECT e.id FROM events e
         WHERE e.id = ANY (ARRAY(SELECT DISTINCT d.event_id FROM deliveries d WHERE d.status NOT IN ('delivered', 'dead') AND d.event_id % 3 = $1 LIMIT 60))
         ORDER BY e.id FOR NO KEY UPDATE) x`, u.rand.IntN(3)).Scan(&ids)
			if err != nil {
				return done{}, err
			}
			tag, err := tx.Exec(ctx, `
WITH chosen AS MATERIALIZED (SELECT d.id FROM deliveries d WHERE d.event_id = ANY ($1) AND d.status NOT IN ('delivered', 'dead') ORDER BY d.id FOR UPDATE)
UPDATE deliveries d SET status = CASE WHEN d.id % 3 = 0 THEN 'dead' ELSE 'delivered' END FROM chosen c WHERE d.id = c.id`, ids)
			return done{updated: tag.RowsAffected()}, err
		})
	}
	// requeue takes the lock of the event first, as it must, and stops where the event is gone.
	requeue := func(ctx context.Context, u *user) error {
		return u.tx(ctx, func(tx pgx.Tx) (done, error) {
			how := []string{"FOR NO KEY UPDATE", "FOR UPDATE"}[u.rand.IntN(2)]
			event, ok, err := lock(ctx, tx, how, oldest, u.between(0, 200), u.one(3))
			if err != nil || !ok {
				return done{}, err
			}
			if u.one(4) {
				u.world.pause(time.Duration(u.between(1, 20)) * time.Millisecond)
			}
			tag, err := tx.Exec(ctx, `
WITH chosen AS MATERIALIZED (SELECT d.id FROM deliveries d WHERE d.event_id = $1 ORDER BY d.id OFFSET $2 LIMIT $3 FOR UPDATE)
UPDATE deliveries d SET status = 'pending' FROM chosen c WHERE d.id = c.id`, event, u.between(0, 3), u.between(1, 4))
			if err == nil && u.one(10) {
				return done{}, errBack
			}
			return done{updated: tag.RowsAffected()}, err
		})
	}
	// The same on loose events by those who do not know that there is a lock to take.
	loosely := func(status, pick string) func(ctx context.Context, u *user) error {
		return func(ctx context.Context, u *user) error {
			return u.tx(ctx, func(tx pgx.Tx) (done, error) {
				event, ok, err := picked(ctx, tx, pick, u.between(0, 100), true)
				if err != nil || !ok {
					return done{}, err
				}
				tag, err := tx.Exec(ctx, `
WITH chosen AS MATERIALIZED (SELECT d.id FROM deliveries d WHERE d.event_id = $1 ORDER BY d.id OFFSET $2 LIMIT $3 FOR UPDATE)
UPDATE deliveries d SET status = $4 FROM chosen c WHERE d.id = c.id`, event, u.between(0, 3), u.between(1, 8), status)
				return done{updated: tag.RowsAffected()}, err
			})
		}
	}
	// A new delivery shares the lock of its event, as a foreign key would make it.
	add := func(ctx context.Context, u *user) error {
		return u.tx(ctx, func(tx pgx.Tx) (done, error) {
			event, ok, err := lock(ctx, tx, "FOR KEY SHARE", oldest, u.between(0, 200), u.one(3))
			if err != nil || !ok {
				return done{}, err
			}
			status := "delivered"
			if u.one(2) {
				status = "pending"
			}
			tag, err := tx.Exec(ctx, `
WITH d AS (INSERT INTO deliveries (event_id, loose, status) SELECT e.id, e.loose, $2 FROM events e WHERE e.id = $1 RETURNING id)
INSERT INTO attempts (delivery_id) SELECT d.id FROM d`, event, status)
			if err == nil && u.one(10) {
				return done{}, errBack
			}
			return done{inserted: 2 * tag.RowsAffected(), kids: 2 * tag.RowsAffected()}, err
		})
	}
	change := func(set string, most int) func(ctx context.Context, u *user) error {
		sql := chosen + ` UPDATE events e SET ` + set + ` FROM chosen c WHERE e.id = c.id`
		return func(ctx context.Context, u *user) error {
			return u.exec(ctx, sql, updated, u.between(0, 200), u.between(1, most))
		}
	}
	age := func(ctx context.Context, u *user) error {
		return u.exec(ctx, chosen+` UPDATE events e SET recorded_at = e.recorded_at + $3 * interval '1 ms' FROM chosen c WHERE e.id = c.id`,
			updated, u.between(0, 200), u.between(1, 10), u.between(-3000, 8000))
	}
	release := func(ctx context.Context, u *user) error {
		return u.exec(ctx, `
WITH chosen AS MATERIALIZED (SELECT e.id FROM events e WHERE e.hold ORDER BY e.id LIMIT 50 FOR UPDATE)
UPDATE events e SET hold = false FROM chosen c WHERE e.id = c.id`, updated)
	}
	// erase deletes events with all that is theirs, as a program without a sweep would.
	erase := func(ctx context.Context, u *user, events string, args ...any) error {
		return u.tx(ctx, func(tx pgx.Tx) (d done, err error) {
			var ids []int64
			if err := tx.QueryRow(ctx, events, args...).Scan(&ids); err != nil {
				return d, err
			}
			if _, err := tx.Exec(ctx, `SELECT FROM deliveries d WHERE d.event_id = ANY ($1) ORDER BY d.id FOR UPDATE`, ids); err != nil {
				return d, err
			}
			attempts, err := tx.Exec(ctx, `DELETE FROM attempts a USING deliveries d WHERE a.delivery_id = d.id AND d.event_id = ANY ($1)`, ids)
			if err != nil {
				return d, err
			}
			deliveries, err := tx.Exec(ctx, `DELETE FROM deliveries d WHERE d.event_id = ANY ($1)`, ids)
			if err != nil {
				return d, err
			}
			tag, err := tx.Exec(ctx, `DELETE FROM events e WHERE e.id = ANY ($1)`, ids)
			kids := attempts.RowsAffected() + deliveries.RowsAffected()
			return done{deleted: tag.RowsAffected() + kids, rows: -tag.RowsAffected(), kids: -kids}, err
		})
	}
	deleter := func(ctx context.Context, u *user) error {
		return erase(ctx, u, chosen+` SELECT coalesce(array_agg(c.id), '{}') FROM chosen c
 WHERE NOT EXISTS (SELECT FROM deliveries d WHERE d.event_id = c.id AND d.status NOT IN ('delivered', 'dead'))`, u.between(0, 200), u.between(1, 5))
	}
	rude := func(ctx context.Context, u *user) error {
		n := u.between(1, 3)
		if u.full() {
			n *= 20
		}
		return erase(ctx, u, `SELECT coalesce(array_agg(x.id), '{}') FROM (SELECT e.id FROM events e ORDER BY e.id LIMIT $1 FOR UPDATE) x`, n)
	}
	// One delivery alone, owed or not.
	forget := func(ctx context.Context, u *user) error {
		return u.tx(ctx, func(tx pgx.Tx) (done, error) {
			pick := oldest
			if u.one(3) {
				pick = oldestOpen
			}
			event, ok, err := lock(ctx, tx, "FOR UPDATE", pick, u.between(0, 100), u.one(3))
			if err != nil || !ok {
				return done{}, err
			}
			delivery, ok, err := picked(ctx, tx, `SELECT d.id FROM deliveries d WHERE d.event_id = $1 ORDER BY d.id LIMIT 1 FOR UPDATE`, event)
			if err != nil || !ok {
				return done{}, err
			}
			attempts, err := tx.Exec(ctx, `DELETE FROM attempts a WHERE a.delivery_id = $1`, delivery)
			if err != nil {
				return done{}, err
			}
			tag, err := tx.Exec(ctx, `DELETE FROM deliveries d WHERE d.id = $1`, delivery)
			kids := attempts.RowsAffected() + tag.RowsAffected()
			return done{deleted: kids, kids: -kids}, err
		})
	}
	const owedOn = `EXISTS (SELECT FROM deliveries d WHERE d.event_id = e.id AND d.` + open + `)`
	past := `FROM events e WHERE e.recorded_at < $1::timestamptz - interval '2 s' AND e.recorded_at >= '1990-01-01 00:00+00'`
	return &family{
		name: "events", children: []string{"deliveries", "attempts"}, ledger: true, cap: 3000,
		acts: []act{
			{"write", 25, write}, {"settle", 10, settle}, {"requeue", 20, requeue}, {"requeue without the lock", 6, loosely("pending", oldest)},
			{"settle without the lock", 4, loosely("delivered", oldestOpen)}, {"add", 8, add}, {"touch", 6, change("touched = e.touched + 1", 10)},
			{"age", 6, age}, {"hold", 4, change("hold = true", 5)}, {"release", 3, release}, {"delete", 4, deleter}, {"rude", 2, rude}, {"forget", 3, forget},
		},
		holds: []act{
			{"rest", 6, rest}, {"snapshot", 1, snapshot},
			{"hold events", 2, func(ctx context.Context, u *user) error {
				return u.hold(ctx, chosen+` SELECT FROM chosen`, u.between(0, 100), u.between(1, 5))
			}},
			{"hold a delivery", 3, func(ctx context.Context, u *user) error {
				return u.hold(ctx, `
SELECT FROM deliveries d
 WHERE d.id = (SELECT x.id FROM deliveries x WHERE x.event_id = (`+oldest+`) ORDER BY x.id DESC LIMIT 1) FOR UPDATE`, u.between(0, 100), u.one(3))
			}},
		},
		due: past + ` AND NOT e.hold AND NOT ` + owedOn,
		kept: []kept{
			{"held", past + ` AND (e.hold OR ` + owedOn + `)`},
		},
	}
}
