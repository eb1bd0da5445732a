package preflight

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestACheckIsReadOnlyAndLeavesTheConnectionAsItWas(t *testing.T) {
	db := installed["run_events"].New(t)
	conn := db.Conn(t)
	watch := &watching{Conn: conn}
	if r := check(t, watch, "run_events", odd); r.State != UpToDate {
		t.Error(r)
	}
	if watch.readOnly != "on" || watch.isolation != "repeatable read" || watch.lockTimeout != "5s" {
		t.Errorf("read-only %s, isolation %s, lock timeout %s", watch.readOnly, watch.isolation, watch.lockTimeout)
	}
	// Of two bounds the shorter one holds.
	for setting, want := range map[string]string{"20": "20ms", "1h": "5s"} {
		if _, err := conn.Exec(t.Context(), "set lock_timeout = '"+setting+"'"); err != nil {
			t.Fatal(err)
		}
		if check(t, watch, "run_events", odd); watch.lockTimeout != want {
			t.Errorf("lock timeout %s of a session that had %s", watch.lockTimeout, setting)
		}
	}
	// In a caller's transaction, which may write, it is so for its own part.
	if r := check(t, beginOnly{watch}, "run_events", odd); r.State != UpToDate || watch.readOnly != "on" {
		t.Errorf("read-only %s: %s", watch.readOnly, r)
	}
	if s := conn.PgConn().TxStatus(); s != 'I' {
		t.Errorf("the connection is left in state %c", s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ctx, conn, "run_events", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// watching asks at the end of a transaction what it was.
type watching struct {
	*pgx.Conn
	readOnly, isolation, lockTimeout string
}

type watchedTx struct {
	pgx.Tx
	w *watching
}

func (w *watching) BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error) {
	tx, err := w.Conn.BeginTx(ctx, o)
	return watchedTx{tx, w}, err
}

// beginOnly is what a transaction offers.
type beginOnly struct{ w *watching }

func (b beginOnly) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := b.w.Conn.Begin(ctx)
	return watchedTx{tx, b.w}, err
}

func (tx watchedTx) Rollback(ctx context.Context) error {
	err := tx.QueryRow(ctx, `select current_setting('transaction_read_only'), current_setting('transaction_isolation'), current_setting('lock_timeout')`).
		Scan(&tx.w.readOnly, &tx.w.isolation, &tx.w.lockTimeout)
	if e := tx.Tx.Rollback(ctx); err == nil {
		err = e
	}
	return err
}

func TestACheckInsideATransactionSeesItAndLeavesItBe(t *testing.T) {
	db := installed["run_events"].New(t)
	conn := db.Conn(t)
	ctx := bounded(t)
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `set local search_path = public; drop index run_events_retention`, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	if r := check(t, tx, "run_events", ""); r.State != Drift {
		t.Error(r)
	}
	if _, err := Check(ctx, conn, "run_events", ""); !errors.Is(err, errInTransaction) {
		t.Errorf("on a connection inside a transaction: %v", err)
	}
	var path string
	if err := tx.QueryRow(ctx, `show search_path`).Scan(&path); err != nil || path != "public" {
		t.Errorf("search path %q (%v)", path, err)
	}
	if _, err := tx.Exec(ctx, `create index run_events_retention on public.run_events (created_at, tenant_id, run_id, sequence)`); err != nil {
		t.Errorf("write after it: %v", err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Error(err)
	}
	if r := check(t, conn, "run_events", ""); r.State != UpToDate {
		t.Error(r)
	}
}

// mending takes the drift away as the second look begins, as somebody who is at work on the schema does.
type mending struct {
	DB
	mend  func()
	looks int
}

func (m *mending) Begin(ctx context.Context) (pgx.Tx, error) {
	if m.looks++; m.looks == 2 {
		m.mend()
	}
	return m.DB.Begin(ctx)
}

// TestADriftIsLookedAtTwice: what is gone at the second look was somebody's DDL on its way.
func TestADriftIsLookedAtTwice(t *testing.T) {
	db := installed["run_events"].New(t)
	db.Exec(t, `drop index public.run_events_retention`)
	m := &mending{DB: db.Conn(t), mend: func() {
		db.Exec(t, `create index run_events_retention on run_events (created_at, tenant_id, run_id, sequence)`)
	}}
	r, err := Check(t.Context(), m, "run_events", "")
	if err != nil || r.Err() != nil || m.looks != 2 {
		t.Errorf("%d looks: %v, %v", m.looks, r.Err(), err)
	}
}
