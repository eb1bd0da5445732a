package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/inboxoutbox/postgres"
	"github.com/prunectl/prunectl/internal/pgtest"
)

// lapse lets all locks end.
func lapse(t *testing.T, db *pgtest.DB) {
	t.Helper()
	db.Exec(t, `update inbox_outbox.inbox set locked_until = now() - interval '1 second' where lock_token is not null`)
}

func TestAnEventIsHandledOnce(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	first := receive(t, conn, "h", "e", inboxoutbox.New)
	if first.Attempts != 1 || first.Lock.Token == "" || first.Lock.Handler != "h" || first.Lock.EventID != "e" ||
		!first.Until.Equal(first.Lock.Until) || first.Until.Location() != time.UTC {
		t.Errorf("receipt %+v", first)
	}
	if left := db.Int(t, `select extract(epoch from locked_until - received_at)::bigint from inbox_outbox.inbox`); left < 59 || left > 61 {
		t.Errorf("locked for %d seconds", left)
	}
	receive(t, conn, "other", "e", inboxoutbox.New)
	second := receive(t, conn, "h", "e", inboxoutbox.InProgress)
	if !second.Until.Equal(first.Until) || second.Lock != (inboxoutbox.Lock{}) || second.Attempts != 1 || !second.CompletedAt.IsZero() {
		t.Errorf("receipt %+v", second)
	}
	must(t, inTx(t, db, func(tx pgx.Tx) error { return store.Complete(bounded(t), tx, first.Lock) }))
	wants(t, db, "in:h/e:completed in:other/e:pending*")
	third := receive(t, conn, "h", "e", inboxoutbox.CompletedBefore)
	if third.CompletedAt.IsZero() || third.CompletedAt.Location() != time.UTC || !third.Until.IsZero() || third.Lock != (inboxoutbox.Lock{}) {
		t.Errorf("receipt %+v", third)
	}
}

// What the handler wrote and the completion are one transaction: both are there, or neither.
func TestTheHandlersWritesAndTheCompletionAreOne(t *testing.T) {
	db := installed.New(t)
	db.Exec(t, `create table effects (event text)`)
	boom := errors.New("boom")
	handle := func(fails bool) error {
		return inTx(t, db, func(tx pgx.Tx) error {
			r, err := store.Receive(bounded(t), tx, "h", "e", time.Minute)
			if err != nil || r.Outcome != inboxoutbox.New {
				return err
			}
			if _, err := tx.Exec(bounded(t), `insert into effects values ('e')`); err != nil {
				return err
			}
			if _, err := store.Add(bounded(t), tx, inboxoutbox.Draft{EventID: "follows e", Topic: "t", Body: []byte(`{}`)}); err != nil {
				return err
			}
			if err := store.Complete(bounded(t), tx, r.Lock); err != nil || !fails {
				return err
			}
			return boom
		})
	}
	if err := handle(true); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	wants(t, db, "")
	for range 3 {
		must(t, handle(false))
	}
	wants(t, db, "in:h/e:completed out:follows e:waits")
	if n := db.Int(t, `select count(*) from effects`); n != 1 {
		t.Errorf("%d effects", n)
	}
}

// Two receive the same event in transactions of their own: the second waits, and has nothing to
// do where the first one commits, and all of it where that one rolls back.
func TestTheSecondReceiverWaitsForTheFirst(t *testing.T) {
	for name, commits := range map[string]bool{"commits": true, "rolls back": false} {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			one, conn := begin(t, db), db.Conn(t)
			first := receive(t, one, "h", "e", inboxoutbox.New)
			must(t, store.Complete(bounded(t), one, first.Lock))
			two, err := conn.Begin(bounded(t))
			must(t, err)
			var second inboxoutbox.Receipt
			done := db.Beside(t, conn, func() (err error) {
				second, err = store.Receive(bounded(t), two, "h", "e", time.Minute)
				return err
			})
			want := inboxoutbox.CompletedBefore
			if commits {
				must(t, one.Commit(bounded(t)))
			} else {
				must(t, one.Rollback(bounded(t)))
				want = inboxoutbox.New
			}
			must(t, <-done)
			if second.Outcome != want {
				t.Errorf("the second is %s, want %s", second.Outcome, want)
			}
			must(t, two.Commit(bounded(t)))
		})
	}
}

// A lock that has lapsed is its holder's until somebody takes the event, and never again after.
func TestALapsedLockCannotOverwriteItsNewOwner(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	kept := receive(t, conn, "h", "kept", inboxoutbox.New)
	old := receive(t, conn, "h", "e", inboxoutbox.New)
	lapse(t, db)
	must(t, inTx(t, db, func(tx pgx.Tx) error { return store.Complete(bounded(t), tx, kept.Lock) })) // nobody took it

	taken := receive(t, conn, "h", "e", inboxoutbox.New)
	if taken.Attempts != 2 || taken.Lock.Token == old.Lock.Token {
		t.Errorf("receipt %+v", taken)
	}
	late := func() {
		t.Helper()
		db.Exec(t, `create table if not exists effects (event text)`)
		err := inTx(t, db, func(tx pgx.Tx) error {
			if _, err := tx.Exec(bounded(t), `insert into effects values ('e')`); err != nil {
				return err
			}
			return store.Complete(bounded(t), tx, old.Lock)
		})
		if !errors.Is(err, inboxoutbox.ErrClaimLost) {
			t.Errorf("late: %v", err)
		}
		if err := store.Release(bounded(t), conn, old.Lock); !errors.Is(err, inboxoutbox.ErrClaimLost) {
			t.Errorf("late release: %v", err)
		}
		if n := db.Int(t, `select count(*) from effects`); n != 0 {
			t.Errorf("%d effects of the late one", n)
		}
	}
	late()
	wants(t, db, "in:h/e:pending* in:h/kept:completed")
	must(t, inTx(t, db, func(tx pgx.Tx) error { return store.Complete(bounded(t), tx, taken.Lock) }))
	late()
	wants(t, db, "in:h/e:completed in:h/kept:completed")
}

// The event is taken by another, but not committed, when the late completion comes: that one
// waits, and is refused, or holds where the other gave up.
func TestALateCompletionBesideANewReceiver(t *testing.T) {
	for name, commits := range map[string]bool{"commits": true, "rolls back": false} {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			late := receive(t, db.Conn(t), "h", "e", inboxoutbox.New)
			lapse(t, db)
			other, conn := begin(t, db), db.Conn(t)
			receive(t, other, "h", "e", inboxoutbox.New)
			tx, err := conn.Begin(bounded(t))
			must(t, err)
			done := db.Beside(t, conn, func() error { return store.Complete(bounded(t), tx, late.Lock) })
			if commits {
				must(t, other.Commit(bounded(t)))
				if err := <-done; !errors.Is(err, inboxoutbox.ErrClaimLost) {
					t.Errorf("late: %v", err)
				}
				must(t, tx.Rollback(bounded(t)))
				wants(t, db, "in:h/e:pending*")
			} else {
				must(t, other.Rollback(bounded(t)))
				must(t, <-done)
				must(t, tx.Commit(bounded(t)))
				wants(t, db, "in:h/e:completed")
			}
		})
	}
}

// The completion came first, and is not committed: a receiver waits, and finds it done.
func TestAReceiverBesideALateCompletion(t *testing.T) {
	db := installed.New(t)
	late := receive(t, db.Conn(t), "h", "e", inboxoutbox.New)
	lapse(t, db)
	tx, conn := begin(t, db), db.Conn(t)
	must(t, store.Complete(bounded(t), tx, late.Lock))
	var r inboxoutbox.Receipt
	done := db.Beside(t, conn, func() (err error) {
		r, err = store.Receive(bounded(t), conn, "h", "e", time.Minute)
		return err
	})
	must(t, tx.Commit(bounded(t)))
	must(t, <-done)
	if r.Outcome != inboxoutbox.CompletedBefore || r.Attempts != 1 {
		t.Errorf("receipt %+v", r)
	}
}

// The lock lapses while its receiver waits for whoever holds the row.
func TestALockIsJudgedWhenTheWaitIsOver(t *testing.T) {
	db := installed.New(t)
	receive(t, db.Conn(t), "h", "e", inboxoutbox.New)
	holder, conn := begin(t, db), db.Conn(t)
	_, err := holder.Exec(bounded(t), `select from inbox_outbox.inbox for update`)
	must(t, err)
	var r inboxoutbox.Receipt
	done := db.Beside(t, conn, func() (err error) {
		r, err = store.Receive(bounded(t), conn, "h", "e", time.Minute)
		return err
	})
	var lapsed time.Time // after the other began
	must(t, holder.QueryRow(bounded(t), `update inbox_outbox.inbox set locked_until = clock_timestamp() returning locked_until`).Scan(&lapsed))
	must(t, holder.Commit(bounded(t)))
	must(t, <-done)
	if r.Outcome != inboxoutbox.New || r.Until.Before(lapsed.Add(time.Minute)) {
		t.Errorf("receipt %+v, and its lock is to hold for a minute from %s on", r, lapsed)
	}
}

func TestAReleasedEventIsNewAgain(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	r := receive(t, conn, "h", "e", inboxoutbox.New)
	must(t, store.Release(bounded(t), conn, r.Lock))
	wants(t, db, "in:h/e:pending")
	if err := store.Release(bounded(t), conn, r.Lock); !errors.Is(err, inboxoutbox.ErrClaimLost) {
		t.Errorf("twice: %v", err)
	}
	if again := receive(t, conn, "h", "e", inboxoutbox.New); again.Attempts != 2 {
		t.Errorf("receipt %+v", again)
	}
}

// A lock compares handler, event and token, and a completed event takes no second completion.
func TestALockIsForOneEventOfOneHandler(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	r := receive(t, conn, "h", "e", inboxoutbox.New)
	receive(t, conn, "h", "f", inboxoutbox.New)
	receive(t, conn, "g", "e", inboxoutbox.New)
	complete := func(l inboxoutbox.Lock) error {
		return inTx(t, db, func(tx pgx.Tx) error { return store.Complete(bounded(t), tx, l) })
	}
	for _, l := range []inboxoutbox.Lock{
		{}, {Handler: "h", EventID: "e"}, {Handler: "h", EventID: "e", Token: "x"}, {Handler: "h", EventID: "f", Token: r.Lock.Token},
		{Handler: "g", EventID: "e", Token: r.Lock.Token}, {Handler: "h", EventID: "e", Token: "00000000-0000-0000-0000-000000000000"},
	} {
		if err := complete(l); !errors.Is(err, inboxoutbox.ErrClaimLost) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	must(t, complete(r.Lock))
	if err := complete(r.Lock); !errors.Is(err, inboxoutbox.ErrClaimLost) {
		t.Errorf("twice: %v", err)
	}
	wants(t, db, "in:g/e:pending* in:h/e:completed in:h/f:pending*")
}

func TestAReceiptThatCannotBeIsRefused(t *testing.T) {
	conn := installed.New(t).Conn(t)
	for _, c := range []struct {
		handler, event string
		hold           time.Duration
		want           error
	}{
		{"", "e", time.Minute, inboxoutbox.ErrEvent}, {"h", "", time.Minute, inboxoutbox.ErrEvent}, {"h", "e\x00", time.Minute, inboxoutbox.ErrEvent},
		{"h", "e", 0, inboxoutbox.ErrClaim}, {"h", "e", -time.Minute, inboxoutbox.ErrClaim}, {"h", "e", time.Microsecond, inboxoutbox.ErrClaim},
	} {
		if _, err := store.Receive(bounded(t), conn, c.handler, c.event, c.hold); !errors.Is(err, c.want) {
			t.Errorf("%q %q %s: %v", c.handler, c.event, c.hold, err)
		}
	}
}

// A caller's stricter transaction is told to begin anew.
func TestAConflictSaysSo(t *testing.T) {
	db := installed.New(t)
	tx, err := db.Conn(t).BeginTx(bounded(t), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	must(t, err)
	_, err = tx.Exec(bounded(t), `select 1 from inbox_outbox.inbox`)
	must(t, err)
	receive(t, db.Conn(t), "h", "e", inboxoutbox.New)
	if _, err := store.Receive(bounded(t), tx, "h", "e", time.Minute); !errors.Is(err, inboxoutbox.ErrConflict) {
		t.Errorf("receive: %v", err)
	}
}

// The store in another schema is another store, and works in every exec mode.
func TestTheStoreWorksInAnySchemaAndExecMode(t *testing.T) {
	db := installed.New(t)
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			config := db.Conn(t).Config()
			config.DefaultQueryExecMode = mode
			conn, err := pgx.ConnectConfig(bounded(t), config)
			must(t, err)
			defer conn.Close(t.Context())
			s := postgres.New(postgres.Options{Schema: odd})
			event := mode.String()
			must(t, pgx.BeginFunc(bounded(t), conn, func(tx pgx.Tx) error {
				r, err := s.Receive(bounded(t), tx, "h", event, time.Minute)
				must(t, err)
				if again, err := s.Receive(bounded(t), tx, "h", event, time.Minute); err != nil || again.Outcome != inboxoutbox.InProgress {
					t.Errorf("again: %+v, %v", again, err)
				}
				if _, err := s.Add(bounded(t), tx, inboxoutbox.Draft{EventID: event, Topic: "t", Body: []byte(`{}`), Headers: map[string]string{"a": "b"}}); err != nil {
					return err
				}
				return s.Complete(bounded(t), tx, r.Lock)
			}))
			all, err := s.Claim(bounded(t), conn, time.Minute, 10)
			must(t, err)
			if len(all) != 1 || all[0].EventID != event {
				t.Fatalf("claimed %+v", all)
			}
			must(t, s.Retry(bounded(t), conn, all[0].Claim, time.Time{}))
			all, err = s.Claim(bounded(t), conn, time.Minute, 10)
			must(t, err)
			must(t, s.Deliver(bounded(t), conn, all[0].Claim))
			l, ok, err := s.Acquire(bounded(t), conn, "h", event, "w", time.Minute)
			if err != nil || !ok {
				t.Fatal(l, err)
			}
			if _, ok, err := s.Acquire(bounded(t), conn, "h", event, "v", time.Minute); err != nil || ok {
				t.Error(ok, err)
			}
			l, err = s.Renew(bounded(t), conn, l, time.Minute)
			must(t, err)
			if h, err := s.Health(bounded(t), conn, 10); err != nil || h.Leases.N != 1 || h.Undelivered.N != 0 || h.Unfinished.N != 0 {
				t.Errorf("health %+v, %v", h, err)
			}
			must(t, s.Return(bounded(t), conn, l))
		})
	}
	wants(t, db, "")
}
