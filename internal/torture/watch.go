package torture

import (
	"context"
	"time"
)

// lookEach is between two looks at who waits for whom.
const lookEach = 100 * time.Millisecond

// waitsSQL is the longest wait of a user that a sweep stands in the way of, in seconds.
const waitsSQL = `
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - l.waitstart)), 0)::float8
  FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
 WHERE NOT l.granted AND a.datname = current_database() AND a.application_name LIKE 'user %'
   AND EXISTS (SELECT FROM unnest(pg_blocking_pids(l.pid)) b (pid) JOIN pg_stat_activity s ON s.pid = b.pid
                WHERE s.application_name LIKE 'sweep %')`

// watch ends the torture at its bounds, or where wish ends, tells how far it is, and looks at who waits, until gone is
// closed.
func (w *world) watch(ctx, wish context.Context, gone <-chan struct{}) {
	look, tell, enough := time.NewTicker(lookEach), time.NewTicker(w.o.TellEach), time.NewTimer(w.o.MaxTime)
	defer look.Stop()
	defer tell.Stop()
	defer enough.Stop()
	end := wish.Done()
	for {
		select {
		case <-gone:
			return
		case <-end:
			w.end("a signal")
			end = nil
		case <-enough.C:
			w.end("the time is over")
		case <-tell.C:
			w.progress(ctx)
		case <-look.C:
			if w.o.RowEvents > 0 && w.events.Load() >= w.o.RowEvents {
				w.end("all row events are done")
			}
			w.look(ctx)
		}
	}
}

func (w *world) look(ctx context.Context) {
	var waits float64
	if err := w.desk.QueryRow(ctx, waitsSQL).Scan(&waits); err != nil {
		w.broken("look at the locks", err)
		return
	}
	w.mu.Lock()
	w.behind = max(w.behind, time.Duration(waits*float64(time.Second)))
	found := len(w.violations)
	w.mu.Unlock()
	if !w.o.first {
		return
	}
	if n, err := w.wrongs(ctx); err != nil {
		w.broken("read the ledger", err)
	} else if n+found > 0 {
		w.end("a violation")
	}
}

// broken takes down what the watcher could not do, and ends the torture: it would go on unseen.
func (w *world) broken(what string, err error) {
	w.violated("", "%s: %v", what, err)
	w.end("the watcher's connection is lost")
}

// wrongs counts the lines of the ledger that say what is wrong.
func (w *world) wrongs(ctx context.Context) (n int, err error) {
	err = w.desk.QueryRow(ctx, "SELECT count(*) FROM ledger WHERE wrong IS NOT NULL").Scan(&n)
	return n, err
}

func (w *world) progress(ctx context.Context) {
	wrong, err := w.wrongs(ctx)
	if err != nil {
		w.broken("read the ledger", err)
		return
	}
	var removed, rows int64
	for _, f := range w.families {
		rows += f.rows.Load() + f.kids.Load()
	}
	n, took := w.events.Load(), time.Since(w.started)
	removed = n
	for _, f := range w.families {
		removed -= f.inserted.Load() + f.updated.Load() + f.deleted.Load()
	}
	w.mu.Lock()
	wrong += len(w.violations)
	behind := w.behind
	w.mu.Unlock()
	w.o.Tell("%5s  %d row events, %.0f a second; %d removed by sweeps, %d rows left; a user waited %s behind a sweep; %d violations; random number %d",
		took.Round(time.Second), n, float64(n)/took.Seconds(), removed, rows, behind.Round(time.Millisecond), wrong, w.o.Random)
}
