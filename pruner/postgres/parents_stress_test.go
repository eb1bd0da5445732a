package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/prunectl/prunectl/drain"
)

// TestParentsUnderLoad has two sweepers of different limits, and requeuers that take the parent's lock first, work on the
// same events. Nothing that was requeued is lost, nobody is a deadlock's victim, and the reports say what is gone.
func TestParentsUnderLoad(t *testing.T) {
	t.Parallel()
	const (
		events    = 14_000
		requeuers = 4
		rounds    = 700  // of each
		batches   = 1000 // of the sweepers together, at least
	)
	start := uint64(time.Now().UnixNano())
	t.Logf("random numbers from %d", start)
	r := outboxRace(t)
	r.sweep.Timeouts.Lock = 400 * time.Millisecond
	r.Exec(t, fmt.Sprintf(`TRUNCATE ev, dl;
INSERT INTO ev SELECT g, timestamptz '2020-01-01 00:00+00' + g / 5 * interval '1 second' FROM generate_series(1, %d) g;
INSERT INTO dl SELECT e.id * 10 + n, e.id, 'r' || n, CASE n WHEN 2 THEN 'dead' ELSE 'ok' END FROM ev e, generate_series(1, 3) n;
CREATE TABLE ledger (what text, id int, status text);
CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO ledger SELECT TG_ARGV[0], o.id, to_jsonb(o) ->> ''status'' FROM old o; RETURN NULL; END';
CREATE TRIGGER gone AFTER DELETE ON ev REFERENCING OLD TABLE AS old FOR EACH STATEMENT EXECUTE FUNCTION gone('ev');
CREATE TRIGGER gone AFTER DELETE ON dl REFERENCING OLD TABLE AS old FOR EACH STATEMENT EXECUTE FUNCTION gone('dl');
CREATE TABLE owed (ev int)`, events))

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	over := make(chan struct{})
	var mu sync.Mutex
	removed, children, made := 0, 0, 0
	sweep := func(s sweeper, limit int) error {
		rep, err := drain.Run(ctx, s, raceCutoff, drain.Bounds{Limit: limit})
		mu.Lock()
		defer mu.Unlock()
		removed, children, made = removed+rep.Removed, children+rep.Children, made+rep.Batches
		if err == nil && rep.Stop != drain.StopDrained && rep.Stop != drain.StopLocked || rep.Stuck+rep.UnknownCommits > 0 {
			err = fmt.Errorf("a drain ended so: %+v", rep)
		}
		return err
	}
	sweepers := map[int]sweeper{17: r.sweeper(t, Options{}), 61: r.sweeper(t, Options{})}
	for limit, s := range sweepers {
		wg.Go(func() {
			for {
				if err := sweep(s, limit); err != nil {
					t.Errorf("the sweeper with the limit %d: %v", limit, err)
					return
				}
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	var requeuing sync.WaitGroup
	for n := range requeuers {
		conn, random := r.Conn(t), rand.New(rand.NewPCG(start, uint64(n)))
		requeuing.Go(func() {
			for range rounds {
				id := 1 + random.IntN(events)
				_, err := conn.PgConn().Exec(ctx, fmt.Sprintf(`BEGIN; SELECT id FROM ev WHERE id = %[1]d FOR UPDATE;
WITH u AS (UPDATE dl SET status = 'pending' WHERE id = %[2]d AND EXISTS (SELECT FROM ev WHERE id = %[1]d) RETURNING ev) INSERT INTO owed SELECT ev FROM u; COMMIT`, id, id*10+1+random.IntN(3))).ReadAll()
				if err == nil && random.IntN(2) == 0 { // settled again, so that the sweepers have something to do to the end
					_, err = conn.PgConn().Exec(ctx, fmt.Sprintf(`BEGIN; SELECT id FROM ev WHERE id = %[1]d FOR UPDATE; UPDATE dl SET status = 'ok' WHERE ev = %[1]d; DELETE FROM owed WHERE ev = %[1]d; COMMIT`, id)).ReadAll()
				}
				if err != nil {
					t.Errorf("a requeuer: %v", err)
					return
				}
			}
		})
	}
	requeuing.Wait()
	close(over)
	wg.Wait()
	for limit, s := range sweepers {
		if err := sweep(s, limit); err != nil {
			t.Errorf("the sweeper with the limit %d at last: %v", limit, err)
		}
	}
	t.Logf("%d events and %d deliveries removed in %d batches, %d events owed", removed, children, made, r.Int(t, "SELECT count(DISTINCT ev) FROM owed"))
	if made < batches {
		t.Errorf("%d batches met each other, which is too few to say something", made)
	}
	same(t, "deadlocks", r.Int(t, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"), int64(0))
	same(t, "owed events that are lost", r.Int(t, "SELECT count(*) FROM owed o WHERE NOT EXISTS (SELECT FROM ev e WHERE e.id = o.ev)"), int64(0))
	same(t, "owed deliveries that are lost", r.Int(t, "SELECT count(*) FROM ledger WHERE status = 'pending'"), int64(0))
	same(t, "events that are left and not owed", r.Int(t, "SELECT count(*) FROM ev e WHERE NOT EXISTS (SELECT FROM owed o WHERE o.ev = e.id)"), int64(0))
	same(t, "removed by all, and gone", []int64{int64(removed), int64(children)}, []int64{r.Int(t, "SELECT count(*) FROM ledger WHERE what = 'ev'"), r.Int(t, "SELECT count(*) FROM ledger WHERE what = 'dl'")})
	same(t, "gone twice", r.Int(t, "SELECT count(*) FROM (SELECT FROM ledger GROUP BY what, id HAVING count(*) > 1) x"), int64(0))
	if owed := r.Int(t, "SELECT count(DISTINCT ev) FROM owed"); owed == 0 || removed == 0 || int(owed)+removed != events {
		t.Errorf("%d events are owed and %d removed, of %d", owed, removed, events)
	}
}
