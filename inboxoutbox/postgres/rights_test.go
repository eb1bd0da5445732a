package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/internal/pgtest"
)

// The least rights of a consumer, which can remove nothing but a lease.
const grants = `
grant usage on schema inbox_outbox to inboxoutbox_consumer;
grant select, insert, update on inbox_outbox.inbox, inbox_outbox.outbox, inbox_outbox.leases to inboxoutbox_consumer;
grant delete on inbox_outbox.leases to inboxoutbox_consumer`

func TestAConsumerNeedsNoRightToDeleteButOfLeases(t *testing.T) {
	pgtest.Role(t, "inboxoutbox_consumer", "login")
	db := installed.New(t)
	db.Exec(t, grants)
	conn, err := pgx.Connect(t.Context(), db.DSNAs("inboxoutbox_consumer"))
	must(t, err)
	defer conn.Close(t.Context())

	r := receive(t, conn, "h", "e", inboxoutbox.New)
	receive(t, conn, "h", "e", inboxoutbox.InProgress)
	must(t, store.Release(bounded(t), conn, r.Lock))
	r = receive(t, conn, "h", "e", inboxoutbox.New)
	must(t, pgx.BeginFunc(bounded(t), conn, func(tx pgx.Tx) error {
		for _, event := range []string{"a", "a", "b"} {
			if _, err := store.Add(bounded(t), tx, inboxoutbox.Draft{EventID: event, Topic: "t", Body: []byte(`{}`)}); err != nil {
				return err
			}
		}
		return store.Complete(bounded(t), tx, r.Lock)
	}))
	all := claim(t, conn, 10, "a", "b")
	must(t, store.Deliver(bounded(t), conn, all[0].Claim))
	must(t, store.Retry(bounded(t), conn, all[1].Claim, time.Time{}))
	l := acquire(t, conn, "p", "w", true)
	l, err = store.Renew(bounded(t), conn, l, time.Hour)
	must(t, err)
	must(t, store.Return(bounded(t), conn, l))
	_, err = store.Health(bounded(t), conn, 10)
	must(t, err)
	wants(t, db, "in:h/e:completed out:a:delivered out:b:waits")

	for _, sql := range []string{`delete from inbox_outbox.inbox`, `delete from inbox_outbox.outbox`, `truncate inbox_outbox.leases`, `select from inbox_outbox.settings`} {
		var pg *pgconn.PgError
		if _, err := conn.Exec(t.Context(), sql); !errors.As(err, &pg) || pg.Code != "42501" {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
