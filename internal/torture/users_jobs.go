package torture

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// jobs is the form of the row's own state. Users lock jobs in the order of their ids.
func jobs(table string, ledger bool) *family {
	q := tables("{jobs}", table)
	chosen := q(`
WITH due AS MATERIALIZED (
  SELECT j.id FROM {jobs} j
   WHERE j.state = $3::text AND j.finished_at < now() - interval '2 s' AND j.finished_at >= '1990-01-01'
   ORDER BY j.finished_at OFFSET $1 LIMIT $2
), chosen AS MATERIALIZED (
  SELECT j.id FROM {jobs} j WHERE j.id = ANY (ARRAY(SELECT d.id FROM due d)) ORDER BY j.id FOR UPDATE
)`)
	ended := func(u *user) string {
		return []string{"done", "done", "done", "failed", "failed", "dead"}[u.rand.IntN(6)]
	}

	write := func(ctx context.Context, u *user) error {
		if u.full() {
			return nil
		}
		n := u.between(5, 100)
		if u.one(15) {
			n = u.between(300, 1500)
		}
		// All of one state, or of all states: the first has many equal ages in one arm.
		states := []string{ended(u)}
		if u.one(2) {
			states = []string{"done", "failed", "queued", "done", "running", "failed", "done"}
			if u.one(4) {
				states = append(states, "dead", "odd", "none")
			}
		}
		return u.exec(ctx, q(`
INSERT INTO {jobs} (state, finished_at, hold)
SELECT nullif(s.state, 'none'), CASE WHEN s.state NOT IN ('queued', 'running') THEN now() - ($3::float8 + $4::float8 * g) * interval '1 ms' END,
       CASE WHEN (g + $5::int) % 100 = 0 THEN true WHEN (g + $5::int) % 2 = 0 THEN false END
  FROM generate_series(1, $1::int) g, LATERAL (SELECT ($2::text[])[1 + g % cardinality($2::text[])] AS state) s`),
			func(n int64) done { return done{inserted: n, rows: n} }, n, states, u.back(), u.step(), u.between(0, 99))
	}
	stray := func(ctx context.Context, u *user) error {
		return u.exec(ctx, q(`
INSERT INTO {jobs} (state, finished_at) VALUES ('done', NULL), ('failed', '-infinity'), ('done', '1980-01-01'), ('failed', 'infinity'), (NULL, now() - interval '5 s')`),
			func(n int64) done { return done{inserted: n, rows: n} })
	}
	finish := func(ctx context.Context, u *user) error {
		return u.exec(ctx, q(`
WITH live AS MATERIALIZED (
  SELECT j.id FROM {jobs} j WHERE j.state IN ('queued', 'running') AND j.id % 3 = $1 ORDER BY j.id LIMIT 200 FOR UPDATE SKIP LOCKED)
UPDATE {jobs} j SET state = $2, finished_at = now() - $3::float8 * interval '1 ms' FROM live l WHERE j.id = l.id`), updated, u.rand.IntN(3), ended(u), u.back())
	}
	reopen := func(ctx context.Context, u *user) error {
		at := "NULL"
		if u.one(3) {
			at = "j.finished_at" // some programs leave it
		}
		sql := chosen + q(` UPDATE {jobs} j SET state = 'queued', finished_at = `+at+` FROM chosen c WHERE j.id = c.id`)
		n := u.between(1, 40)
		if !u.one(8) {
			return u.exec(ctx, sql, updated, u.between(0, 300), n, ended(u))
		}
		return u.tx(ctx, func(tx pgx.Tx) (done, error) {
			if _, err := tx.Exec(ctx, sql, u.between(0, 300), n, ended(u)); err != nil {
				return done{}, err
			}
			return done{}, errBack
		})
	}
	change := func(set string, most int) func(ctx context.Context, u *user) error {
		sql := chosen + q(` UPDATE {jobs} j SET `+set+` FROM chosen c WHERE j.id = c.id`)
		return func(ctx context.Context, u *user) error {
			return u.exec(ctx, sql, updated, u.between(0, 300), u.between(1, most), ended(u))
		}
	}
	age := func(ctx context.Context, u *user) error {
		return u.exec(ctx, chosen+q(` UPDATE {jobs} j SET finished_at = j.finished_at + $4 * interval '1 ms' FROM chosen c WHERE j.id = c.id`),
			updated, u.between(0, 300), u.between(1, 30), ended(u), u.between(-3000, 8000))
	}
	release := func(ctx context.Context, u *user) error {
		return u.exec(ctx, q(`
WITH chosen AS MATERIALIZED (SELECT j.id FROM {jobs} j WHERE j.hold ORDER BY j.id LIMIT 100 FOR UPDATE)
UPDATE {jobs} j SET hold = CASE WHEN j.id % 2 = 0 THEN false END FROM chosen c WHERE j.id = c.id`), updated)
	}
	deleter := func(ctx context.Context, u *user) error {
		return u.exec(ctx, chosen+q(` DELETE FROM {jobs} j USING chosen c WHERE j.id = c.id AND j.hold IS NOT TRUE`), deleted, u.between(0, 300), u.between(1, 40), ended(u))
	}
	rude := func(ctx context.Context, u *user) error {
		n := u.between(1, 20)
		if u.full() {
			n *= 20
		}
		return u.exec(ctx, q(`
WITH chosen AS MATERIALIZED (SELECT j.id FROM {jobs} j ORDER BY j.id LIMIT $1 FOR UPDATE)
DELETE FROM {jobs} j USING chosen c WHERE j.id = c.id`), deleted, n)
	}
	due := q(`FROM {jobs} j
 WHERE (j.state = 'done' AND j.finished_at < $1::timestamptz - interval '2 s' OR j.state = 'failed' AND j.finished_at < $1::timestamptz - interval '4 s')
   AND j.finished_at >= '1990-01-01 00:00+00' AND j.hold IS NOT TRUE`)
	return &family{
		name: table, ledger: ledger, cap: 8000, due: due,
		acts: []act{
			{"write", 25, write}, {"stray", 1, stray}, {"finish", 12, finish}, {"reopen", 20, reopen},
			{"touch", 6, change("touched = j.touched + 1", 30)}, {"age", 8, age}, {"hold", 4, change("hold = true", 4)}, {"release", 3, release},
			{"fail", 4, change("state = 'failed'", 20)}, {"die", 2, change("state = 'dead'", 5)}, {"delete", 4, deleter}, {"rude", 2, rude},
		},
		holds: []act{
			{"rest", 6, rest}, {"snapshot", 1, snapshot},
			{"hold jobs", 4, func(ctx context.Context, u *user) error {
				return u.hold(ctx, chosen+` SELECT FROM chosen`, u.between(0, 200), u.between(1, 5), ended(u))
			}},
		},
	}
}
