package torture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/internal/pgserver"
)

// biteTime is how long a wrong sweeper is given to be found, and biteRun how long one of the runs is that it is given.
const (
	biteTime = 20 * time.Second
	biteRun  = 3 * time.Second
)

// bite is a wrong sweeper of one family.
type bite struct {
	name, family string
	deadlock     string // deadlock_timeout
	recruit      func(context.Context, *world, *family) ([]sweeper, error)
	found        string // how the violation reads
}

// TestTortureBites: each wrong sweeper is found, and by the check that is meant to find it.
func TestTortureBites(t *testing.T) {
	s := server(t)
	for _, b := range slices.Concat(plains, policies, liars) {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			b.carryOut(t, s)
		})
	}
}

func (b bite) carryOut(t *testing.T, s *pgserver.Server) {
	random := number()
	var last []string
	for start := time.Now(); time.Since(start) < biteTime; random++ {
		r, err := Run(t.Context(), Options{DSN: s.DSN("postgres"), Random: random, MaxTime: biteRun, only: []string{b.family}, first: true, deadlock: b.deadlock, wrong: b.recruit})
		if err != nil {
			t.Fatal(err)
		}
		last = r.Violations()
		if slices.ContainsFunc(last, func(v string) bool { return strings.Contains(v, b.found) }) {
			t.Logf("found after %s", time.Since(start).Round(time.Millisecond))
			return
		}
	}
	t.Errorf("not found within %s; what was found at last: %q", biteTime, last[:min(5, len(last))])
}

// slowly gives others the time to come between the snapshot of a statement and its deletes that a large table would give
// them.
const slowly = " AND (SELECT pg_sleep(0.1)) IS NOT NULL"

// plains are sweeps as people write them, and worse.
var plains = []bite{
	{"a plain delete beside owners", "run_events", "", plainly(func(ctx context.Context, c *pgx.Conn) (int, int, error) {
		return executed(c.Exec(ctx, `
DELETE FROM run_events WHERE id IN (
  SELECT e.id FROM run_events e JOIN runs r ON r.id = e.run_id
   WHERE r.status IN ('completed', 'failed', 'cancelled') AND e.created_at < now() - interval '2 s' AND e.created_at >= '1990-01-01' AND e.kind <> 'pinned'
   ORDER BY e.created_at LIMIT 300)`+slowly))
	}), "removed by sweep run_events plainly"},
	{"a look at owners without a lock", "run_events", "", plainly(func(ctx context.Context, c *pgx.Conn) (removed, _ int, err error) {
		// It looks rightly, and then takes its time to commit.
		return within(ctx, c, func(tx pgx.Tx) (int, int, error) {
			removed, _, err := executed(tx.Exec(ctx, `
DELETE FROM run_events e USING runs r
 WHERE r.id = e.run_id AND r.status IN ('completed', 'failed', 'cancelled') AND e.created_at < now() - interval '2 s' AND e.created_at >= '1990-01-01' AND e.kind <> 'pinned'
   AND e.id IN (SELECT x.id FROM run_events x ORDER BY x.created_at LIMIT 300)`))
			if err == nil {
				_, err = tx.Exec(ctx, "SELECT pg_sleep(0.05)")
			}
			return removed, 0, err
		})
	}), "when it was protected since"},
	{"orphans", "run_events", "", plainly(func(ctx context.Context, c *pgx.Conn) (int, int, error) {
		return executed(c.Exec(ctx, `DELETE FROM run_events e WHERE e.created_at < now() - interval '2 s' AND NOT EXISTS (SELECT FROM runs r WHERE r.id = e.run_id)`))
	}), "its run does not exist"},
	{"a plain delete of jobs", "jobs", "", plainly(func(ctx context.Context, c *pgx.Conn) (int, int, error) {
		return executed(c.Exec(ctx, `
DELETE FROM jobs WHERE id IN (
  SELECT j.id FROM jobs j
   WHERE j.state = 'done' AND j.finished_at < now() - interval '2 s' AND j.finished_at >= '1990-01-01' AND j.hold IS NOT TRUE
   ORDER BY j.finished_at LIMIT 300)`+slowly))
	}), "removed by sweep jobs plainly"},
	{"a delete without an end to its waits", "jobs", "200ms", plainly(func(ctx context.Context, c *pgx.Conn) (int, int, error) {
		return within(ctx, c, func(tx pgx.Tx) (removed, _ int, err error) {
			var ids []int64
			err = tx.QueryRow(ctx, `
SELECT coalesce(array_agg(x.id ORDER BY x.id DESC), '{}')
  FROM (SELECT j.id FROM jobs j WHERE j.state = 'done' AND j.finished_at < now() - interval '2 s' ORDER BY j.finished_at LIMIT 200) x`).Scan(&ids)
			if err == nil {
				_, err = tx.Exec(ctx, "SET LOCAL lock_timeout = 0")
			}
			for _, id := range ids {
				if err != nil {
					break
				}
				var tag pgconn.CommandTag
				tag, err = tx.Exec(ctx, "DELETE FROM jobs WHERE id = $1", id)
				removed += int(tag.RowsAffected())
			}
			return removed, 0, err
		})
	}), "deadlock"},
	{"parents judged by an old snapshot", "events", "", parental(`
SELECT coalesce(array_agg(x.id), '{}')
  FROM (SELECT e.id FROM events e
         WHERE e.recorded_at < now() - interval '2 s' AND NOT e.hold
           AND NOT EXISTS (SELECT FROM deliveries d WHERE d.event_id = e.id AND d.status NOT IN ('delivered', 'dead'))
         ORDER BY e.recorded_at LIMIT 200) x`,
		requeued,
		`DELETE FROM attempts a USING deliveries d WHERE a.delivery_id = d.id AND d.event_id = ANY ($1)`,
		`DELETE FROM deliveries d WHERE d.event_id = ANY ($1)`,
		`DELETE FROM events e WHERE e.id = ANY ($1)`), "is owed"},
	{"parents without their children", "events", "", parental(dueParents, `DELETE FROM events e WHERE e.id = ANY ($1)`), "is left without its event"},
	{"parents before their children", "events", "", parental(dueParents, `DELETE FROM events e WHERE e.id = ANY ($1)`, `DELETE FROM deliveries d WHERE d.event_id = ANY ($1)`),
		"its event is gone before it"},
	{"children before theirs", "events", "", parental(dueParents,
		`WITH d AS (DELETE FROM deliveries d WHERE d.event_id = ANY ($1) RETURNING d.id) DELETE FROM attempts a USING d WHERE a.delivery_id = d.id`), "its delivery is gone before it"},
}

// requeued waits until one of the picked parents is owed, and leaves that one alone to be deleted by the look of before.
const requeued = `
SELECT ARRAY(SELECT d.event_id FROM deliveries d WHERE d.event_id = ANY ($1) AND d.status NOT IN ('delivered', 'dead') LIMIT 1)`

// dueParents are parents that may go, and are locked until the commit.
const dueParents = `
SELECT coalesce(array_agg(x.id), '{}')
  FROM (SELECT e.id FROM events e
         WHERE e.recorded_at < now() - interval '2 s' AND NOT e.hold
           AND NOT EXISTS (SELECT FROM deliveries d WHERE d.event_id = e.id AND d.status NOT IN ('delivered', 'dead'))
         ORDER BY e.recorded_at LIMIT 50 FOR UPDATE SKIP LOCKED) x`

// policies are wrong policies, which the right sweepers follow: each of them is a clause less in the statement.
var policies = []bite{
	policed("outside of the sweep", "run_events", `only: {kind: {not: pinned}}`, `only: {kind: [log, pinned]}`, "it is outside of the sweep"),
	policed("a run that lives", "run_events", `terminal: [completed, failed, cancelled]`, `terminal: [completed, failed, cancelled, odd]`, "its run is odd"),
	policed("no usable age", "run_events", `age: created_at`, `age: {column: created_at, since: 1970-01-02}`, "it has no usable age"),
	policed("events within their window", "run_events", `window: 2s`, `window: 1s`, "it is within its window"),
	policed("a state within its window", "jobs", `failed: 4s`, `failed: 3s`, "it is within its window"),
	policed("jobs on hold", "jobs", `terminal: [done, failed, dead], hold: hold`, `terminal: [done, failed, dead]`, "it is on hold"),
	policed("a state that is kept for ever", "jobs", `dead: never`, `dead: 2s`, "it is dead"),
	policed("what is owed", "events", `terminal: [delivered, dead]`, `terminal: [delivered, dead, pending]`, "it is owed"),
	policed("parents on hold", "events", "\n      hold: hold\n", "\n", "is on hold"),
	policed("parents within their window", "events", `window: 2s`, `window: 1s`, "its event: it is within its window"),
	policed("children of children", "events", "        children:\n          - {table: attempts, key: {id: delivery_id}}\n", "", "it leaves an attempt behind"),
}

// liars do what is right, and say something else.
var liars = []bite{
	lying("one more than went", "jobs", func(r *drain.SweepReport) { r.Removed++ }, "said that it removed"),
	lying("one more than went without a ledger", "bare_jobs", func(r *drain.SweepReport) { r.Removed++ }, "by what was said it must be"),
	lying("a child less than went", "events", func(r *drain.SweepReport) { r.Children-- }, "said that it removed"),
	lying("one held less", "bare_run_events", func(r *drain.SweepReport) { r.Held-- }, "rows are held; the last drain"),
	{"drained that is not", "jobs", "", plainly(func(context.Context, *pgx.Conn) (int, int, error) { return 0, 0, nil }), "rows are due and left"},
}

// plain is a wrong sweeper: one that does the same until nothing goes any more.
type plain struct {
	called string
	conn   *pgx.Conn
	batch  func(context.Context, *pgx.Conn) (removed, children int, err error)
}

func plainly(batch func(context.Context, *pgx.Conn) (removed, children int, err error)) func(context.Context, *world, *family) ([]sweeper, error) {
	return func(ctx context.Context, w *world, f *family) ([]sweeper, error) {
		name := "sweep " + f.name + " plainly"
		conn, err := w.connect(ctx, name, pgx.QueryExecModeCacheStatement)
		if err == nil {
			_, err = conn.Exec(ctx, "SET lock_timeout = '200ms'")
		}
		return []sweeper{&plain{name, conn, batch}}, err
	}
}

func (p *plain) name() string { return p.called }

func (p *plain) close() {
	if p.conn != nil {
		_ = p.conn.Close(context.Background())
	}
}

// drain is a batch after the other until nothing goes, or it is to stop; the last drain is one batch, since nobody is left
// to come between. It takes no notice of a context that ends early: its connection must last.
func (p *plain) drain(ctx context.Context, bound func(*drain.Bounds)) (r drain.SweepReport, now time.Time, err error) {
	ctx = context.WithoutCancel(ctx)
	var b drain.Bounds
	bound(&b)
	r.Stop = drain.StopDrained
	for n := 0; n < 50 && !stopped(b.Stop); n++ {
		if err := p.conn.QueryRow(ctx, "SELECT now()").Scan(&now); err != nil {
			return r, now, err
		}
		removed, children, err := p.batch(ctx, p.conn)
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "55P03" && b.Stop != nil {
			continue // somebody holds a row; it was rolled back
		}
		if err != nil {
			r.Stop, r.Err = drain.StopFailed, err
			return r, now, err
		}
		r.Batches, r.Removed, r.Children = r.Batches+1, r.Removed+removed, r.Children+children
		if removed+children == 0 || b.Stop == nil {
			break
		}
	}
	return r, now, nil
}

// stopped reports whether it is to stop; without a channel it never is.
func stopped(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// executed is what a statement removed.
func executed(tag interface{ RowsAffected() int64 }, err error) (removed, children int, _ error) {
	return int(tag.RowsAffected()), 0, err
}

// within commits what f did.
func within(ctx context.Context, c *pgx.Conn, f func(pgx.Tx) (int, int, error)) (removed, children int, err error) {
	err = pgx.BeginFunc(ctx, c, func(tx pgx.Tx) (err error) {
		removed, children, err = f(tx)
		return err
	})
	return removed, children, err
}

// parental picks parents, and then deletes by statements of their own.
func parental(pick string, deletes ...string) func(context.Context, *world, *family) ([]sweeper, error) {
	return plainly(func(ctx context.Context, c *pgx.Conn) (int, int, error) {
		return within(ctx, c, func(tx pgx.Tx) (removed, children int, err error) {
			var ids []int64
			if err := tx.QueryRow(ctx, pick).Scan(&ids); err != nil {
				return 0, 0, err
			}
			for _, sql := range deletes {
				if sql == requeued {
					if ids, err = awaited(ctx, tx, ids); err != nil {
						return 0, 0, err
					}
					continue
				}
				tag, err := tx.Exec(ctx, sql, ids)
				if err != nil {
					return 0, 0, err
				}
				if strings.Contains(sql, "FROM events") {
					removed += int(tag.RowsAffected())
				} else {
					children += int(tag.RowsAffected())
				}
			}
			return removed, children, nil
		})
	})
}

// awaited asks for one that was requeued until there is one, or half a second is over.
func awaited(ctx context.Context, tx pgx.Tx, ids []int64) (found []int64, err error) {
	for start := time.Now(); len(found) == 0 && err == nil && time.Since(start) < time.Second/2; {
		err = tx.QueryRow(ctx, requeued, ids).Scan(&found)
	}
	return found, err
}

// policed follows a policy in which one text stands in the place of another.
func policed(name, sweep, old, wrong, found string) bite {
	return bite{name, sweep, "", func(ctx context.Context, w *world, f *family) ([]sweeper, error) {
		at := strings.Index(policyText, "\n  "+sweep+":")
		text := policyText[:at] + strings.Replace(policyText[at:], old, wrong, 1)
		if text == policyText {
			return nil, fmt.Errorf("the policy has no %q", old)
		}
		e, err := w.engine(ctx, text, sweep, kinds[1])
		return []sweeper{e}, err
	}, found}
}

// liar changes what a right sweeper says, once it has something to say.
type liar struct {
	sweeper
	lie func(*drain.SweepReport)
}

func lying(name, sweep string, lie func(*drain.SweepReport), found string) bite {
	return bite{name, sweep, "", func(ctx context.Context, w *world, f *family) ([]sweeper, error) {
		e, err := w.engine(ctx, policyText, sweep, kinds[2])
		return []sweeper{&liar{e, lie}}, err
	}, found}
}

func (l *liar) drain(ctx context.Context, bound func(*drain.Bounds)) (drain.SweepReport, time.Time, error) {
	r, now, err := l.sweeper.drain(ctx, bound)
	l.lie(&r)
	return r, now, err
}
