package torture

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errBack makes a transaction end by a rollback, which is what was wanted.
var errBack = errors.New("changed its mind")

// use lets a user do one thing after another.
func (w *world) use(ctx context.Context, u *user) {
	total := 0
	for _, a := range u.acts {
		total += a.weight
	}
	for !w.over() {
		n := u.rand.IntN(total)
		for _, a := range u.acts {
			if n -= a.weight; n < 0 {
				u.doing = a.name
				if err := a.do(ctx, u); !w.allowed(u, err) {
					return
				}
				u.done[a.name]++
				break
			}
		}
	}
}

// allowed says whether a user goes on after an error. A lock that was not to be had is a matter of the report; a deadlock
// or a serialization failure, and everything that nobody expects, is a violation.
func (w *world) allowed(u *user, err error) bool {
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return true
	case errors.As(err, &pg) && pg.Code == "55P03":
		w.mu.Lock()
		w.timeouts++
		w.mu.Unlock()
		return true
	}
	detail := ""
	if pg != nil {
		detail = " " + pg.Detail
	}
	w.violated(u.family.name, "%s: %s: %v%s", u.name, u.doing, err, detail)
	return pg != nil
}

// tx is one transaction. What f says it did counts once it is committed.
func (u *user) tx(ctx context.Context, f func(pgx.Tx) (done, error)) error {
	tx, err := u.conn.Begin(ctx)
	if err != nil {
		return err
	}
	t := &timed{Tx: tx, user: u}
	d, err := f(t)
	if err != nil {
		back := tx.Rollback(ctx)
		if errors.Is(err, errBack) {
			return back
		}
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	g := u.family
	g.rows.Add(d.rows)
	g.kids.Add(d.kids)
	g.inserted.Add(d.inserted)
	g.updated.Add(d.updated)
	g.deleted.Add(d.deleted)
	u.world.events.Add(d.inserted + d.updated + d.deleted)
	return nil
}

// timed is a transaction that knows how long its statements take.
type timed struct {
	pgx.Tx
	user  *user
	start time.Time // of the statement in hand
}

func (t *timed) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	t.start = time.Now()
	defer t.took()
	return t.Tx.Exec(ctx, sql, args...)
}

func (t *timed) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return timedRow{t, t.Tx, ctx, sql, args}
}

// timedRow sends its query when it is read.
type timedRow struct {
	timed *timed
	tx    pgx.Tx
	ctx   context.Context
	sql   string
	args  []any
}

func (r timedRow) Scan(to ...any) error {
	r.timed.start = time.Now()
	defer r.timed.took()
	return r.tx.QueryRow(r.ctx, r.sql, r.args...).Scan(to...)
}

func (t *timed) took() {
	w, took := t.user.world, time.Since(t.start)
	w.mu.Lock()
	defer w.mu.Unlock()
	if took > w.slowest {
		w.slowest, w.slowestIs = took, t.user.family.name+": "+t.user.doing
	}
}

// exec is a transaction of one statement. count says what its rows are.
func (u *user) exec(ctx context.Context, sql string, count func(n int64) done, args ...any) error {
	return u.tx(ctx, func(tx pgx.Tx) (done, error) {
		tag, err := tx.Exec(ctx, sql, args...)
		return count(tag.RowsAffected()), err
	})
}

func updated(n int64) done { return done{updated: n} }
func deleted(n int64) done { return done{deleted: n, rows: -n} }

// picked reads one id; ok is false where there is none.
func picked(ctx context.Context, tx pgx.Tx, sql string, args ...any) (id int64, ok bool, err error) {
	err = tx.QueryRow(ctx, sql, args...).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return id, err == nil, err
}

// hold keeps the locks of a statement for some time: mostly for less than a sweep waits, now and then for more.
func (u *user) hold(ctx context.Context, sql string, args ...any) error {
	return u.tx(ctx, func(tx pgx.Tx) (done, error) {
		if _, err := tx.Exec(ctx, sql, args...); err != nil {
			return done{}, err
		}
		d := u.between(5, 150)
		if u.one(6) {
			d = u.between(250, 700)
		}
		u.world.pause(time.Duration(d) * time.Millisecond)
		return done{}, nil
	})
}

// snapshot keeps a snapshot open, so that nothing that is removed meanwhile can be vacuumed.
func snapshot(ctx context.Context, u *user) error {
	tx, err := u.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	if _, err = tx.Exec(ctx, "SELECT count(*) FROM "+u.family.name); err == nil {
		u.world.pause(time.Duration(u.between(500, 3000)) * time.Millisecond)
	}
	return errors.Join(err, tx.Rollback(ctx))
}

// rest is what one who holds locks does in between.
func rest(_ context.Context, u *user) error {
	u.world.pause(time.Duration(u.between(10, 100)) * time.Millisecond)
	return nil
}

// full reports whether the target has as many rows as are wanted.
func (u *user) full() bool { return u.family.rows.Load() > u.family.cap }

// back is how far in the past the ages of some rows begin, in milliseconds: mostly they are due, or will be soon, some are
// in the future.
func (u *user) back() int {
	switch n := u.rand.IntN(10); {
	case n < 5:
		return u.between(2000, 6000)
	case n < 9:
		return u.between(0, 2500)
	}
	return -u.between(1, 3000)
}

// step is how far the ages of some rows are apart, in milliseconds. A third of them are equal, more than some limits.
func (u *user) step() float64 {
	if u.one(3) {
		return 0
	}
	return u.rand.Float64() * 5
}
