package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/internal/pgtest"
)

// stepped is a transaction in which something happens before a statement that looks at what was
// in the way of another: the first time, or each time.
type stepped struct {
	pgx.Tx
	step  func()
	each  bool
	steps *int
}

func (s stepped) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if strings.HasPrefix(strings.TrimSpace(sql), "SELECT") && (s.each || *s.steps == 0) {
		*s.steps++
		s.step()
	}
	return s.Tx.QueryRow(ctx, sql, args...)
}

// What was in the way is gone, or free, when it is looked at: then the call begins anew, and gives
// up where that goes on.
func TestWhatCameAndWentIsTriedAgain(t *testing.T) {
	const (
		received = `insert into inbox_outbox.inbox (handler, event_id, lock_token, locked_until) values ('h', 'e', gen_random_uuid(), 'infinity')
on conflict (handler, event_id) do update set locked_until = 'infinity'`
		added = `insert into inbox_outbox.outbox (event_id, topic, body) values ('e', 't', '{}') on conflict do nothing`
		held  = `insert into inbox_outbox.leases values ('h', 'p', 'old', gen_random_uuid(), 'infinity') on conflict (handler, partition) do update set expires_at = 'infinity'`
	)
	receiveIt := func(tx pgx.Tx) (bool, error) {
		r, err := store.Receive(bounded(t), tx, "h", "e", time.Minute)
		return r.Outcome == inboxoutbox.New, err
	}
	acquireIt := func(tx pgx.Tx) (bool, error) {
		l, ok, err := store.Acquire(bounded(t), tx, "h", "p", "new", time.Minute)
		return ok && l.Holder == "new", err
	}
	for name, c := range map[string]struct {
		before, step string
		call         func(tx pgx.Tx) (done bool, err error)
	}{
		"an event that is removed":    {received, `delete from inbox_outbox.inbox`, receiveIt},
		"an event whose lock lapses":  {received, `update inbox_outbox.inbox set locked_until = now() - interval '1 second'`, receiveIt},
		"an event that is given back": {received, `update inbox_outbox.inbox set lock_token = null, locked_until = null`, receiveIt},
		"a record that is removed": {added, `delete from inbox_outbox.outbox`, func(tx pgx.Tx) (bool, error) {
			a, err := store.Add(bounded(t), tx, inboxoutbox.Draft{EventID: "e", Topic: "t", Body: []byte(`{}`)})
			return a.New, err
		}},
		"a lease that is removed": {held, `delete from inbox_outbox.leases`, acquireIt},
		"a lease that expires":    {held, `update inbox_outbox.leases set expires_at = now() - interval '1 second'`, acquireIt},
	} {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			db.Exec(t, c.before)
			done, err := c.call(step(t, db, false, c.step))
			if !done || err != nil {
				t.Errorf("done %t, %v", done, err)
			}
		})
	}
	// It is there whenever the call tries, and gone whenever it looks.
	t.Run("again and again", func(t *testing.T) {
		for name, c := range map[string]struct {
			gone string
			call func(tx pgx.Tx) (bool, error)
		}{"inbox": {`delete from inbox_outbox.inbox`, receiveIt}, "leases": {`delete from inbox_outbox.leases`, acquireIt}} {
			db := installed.New(t)
			tx := step(t, db, true, c.gone)
			if _, err := c.call(inTheWay{tx, func() { db.Exec(t, map[string]string{"inbox": received, "leases": held}[name]) }}); !errors.Is(err, inboxoutbox.ErrConflict) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// step is a stepped one in which somebody else runs sql before a look.
func step(t *testing.T, db *pgtest.DB, each bool, sql string) stepped {
	t.Helper()
	return stepped{autocommit{db.Conn(t)}, func() { db.Exec(t, sql) }, each, new(int)}
}

// autocommit is a connection without a transaction, where a pgx.Tx is asked for: what a statement
// has locked is free again when the next one comes.
type autocommit struct{ conn }

type conn = *pgx.Conn

func (autocommit) Commit(context.Context) error   { return nil }
func (autocommit) Rollback(context.Context) error { return nil }
func (autocommit) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }
func (a autocommit) Conn() *pgx.Conn              { return a.conn }

// inTheWay puts something in the way before each statement that writes.
type inTheWay struct {
	stepped
	put func()
}

func (s inTheWay) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if strings.HasPrefix(strings.TrimSpace(sql), "INSERT") {
		s.put()
	}
	return s.stepped.QueryRow(ctx, sql, args...)
}
