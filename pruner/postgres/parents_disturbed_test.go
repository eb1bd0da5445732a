package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/drain"
	"github.com/prunectl/prunectl/pruner"
)

// disturbedInChunks has somebody act before each chunk of a parent, and end afterwards.
type disturbedInChunks struct {
	pruner.Pruner
	t           *testing.T
	conn        *pgx.Conn
	before, end string
	times, most int
}

func (d *disturbedInChunks) Prune(ctx context.Context, b pruner.Batch) (pruner.Result, error) {
	if strings.Contains(b.After.String(), "chunk") && d.times < d.most {
		d.times++
		if _, err := d.conn.Exec(ctx, d.before); err != nil {
			d.t.Error(err)
		}
		defer func() {
			if _, err := d.conn.Exec(ctx, d.end); err != nil {
				d.t.Error(err)
			}
		}()
	}
	return d.Pruner.Prune(ctx, b)
}

// TestParentsDisturbedBetweenChunks: whoever holds or changes a parent each time that a chunk of it comes is no fault of the
// sweep, which goes on with the others.
func TestParentsDisturbedBetweenChunks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, before, end string
		stop              drain.Stop
		removed, locked   int
	}{
		{"held", "BEGIN; SELECT FROM ev WHERE id = 1 FOR UPDATE", "ROLLBACK", drain.StopLocked, 1, 1},
		{"touched", "UPDATE ev SET at = at WHERE id = 1", "SELECT", drain.StopDrained, 2, 0},
	} {
		for name, race := range map[string]func(*testing.T) *race{"keyed": outboxRace, "unkeyed": unkeyedOutbox} {
			t.Run(c.name+" "+name, func(t *testing.T) {
				r := race(t)
				r.sweep.Batch.Limit = 2
				r.Exec(t, "TRUNCATE ev, dl; INSERT INTO ev VALUES (1, '2020-01-01'), (2, '2020-01-02'); INSERT INTO dl SELECT g, 1, 'r' || g, 'ok' FROM generate_series(1, 9) g")
				d := &disturbedInChunks{Pruner: r.sweeper(t, Options{}), t: t, conn: r.Conn(t), before: c.before, end: c.end, most: 20}
				rep, err := drain.Run(t.Context(), d, raceCutoff, drain.Bounds{Limit: 2})
				if err != nil || rep.Stop != c.stop || rep.Removed != c.removed || rep.Locked != c.locked {
					t.Errorf("after %d times: stop %s, %d removed, %d locked, %v; want %s, %d, %d", d.times, rep.Stop, rep.Removed, rep.Locked, err, c.stop, c.removed, c.locked)
				}
			})
		}
	}
}
