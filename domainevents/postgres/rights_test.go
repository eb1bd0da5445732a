package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/domainevents"
	"github.com/prunectl/prunectl/internal/pgtest"
)

// The least rights of each who has to do with events: who records, who delivers, who looks after it, and who deletes. What
// the triggers write is not theirs to write.
const grants = `
grant usage on schema public to domainevents_recorder, domainevents_worker, domainevents_operator, domainevents_deleter;
grant select, insert on domain_events to domainevents_recorder;
grant insert on domain_event_deliveries to domainevents_recorder;
grant select on domain_events, domain_event_deliveries to domainevents_worker, domainevents_operator, domainevents_deleter;
grant update (status, due_at, claimed_by, claimed_at, claimed_until, attempts, last_error, finished_at) on domain_event_deliveries to domainevents_worker;
grant update (status, due_at, attempts, finished_at) on domain_event_deliveries to domainevents_operator;
grant update (parked) on domain_events to domainevents_operator;
grant select on domain_event_receivers to domainevents_operator;
grant delete on domain_events, domain_event_deliveries to domainevents_deleter`

func TestEachDoesHisPartWithTheLeastRights(t *testing.T) {
	as := map[string]func(*pgtest.DB) *pgx.Conn{}
	for _, who := range []string{"recorder", "worker", "operator", "deleter"} {
		pgtest.Role(t, "domainevents_"+who, "login")
		as[who] = func(db *pgtest.DB) *pgx.Conn {
			conn, err := pgx.Connect(t.Context(), db.DSNAs("domainevents_"+who))
			must(t, err)
			t.Cleanup(func() { _ = conn.Close(t.Context()) })
			return conn
		}
	}
	db := installed.New(t)
	db.Exec(t, grants)
	recorder, worker, operator, deleter := as["recorder"](db), as["worker"](db), as["operator"](db), as["deleter"](db)

	record(t, recorder, domainevents.Draft{Retention: domainevents.UntilSucceeded}, to("a", "b", "c")...)
	record(t, recorder, domainevents.Draft{DedupeKey: "k"})
	must(t, pgx.BeginFunc(t.Context(), recorder, func(tx pgx.Tx) error {
		done, err := store.Record(bounded(t), tx, domainevents.Draft{Type: "x", DedupeKey: "k"})
		if done.New || done.Event != 2 {
			t.Errorf("recorded %+v", done)
		}
		return err
	}))

	all := claim(t, worker, "w", 10, "1/a", "1/b", "1/c")
	must(t, store.Succeed(t.Context(), worker, all[0].Claim))
	must(t, store.Dead(t.Context(), worker, all[1].Claim, "x"))
	must(t, store.Fail(t.Context(), worker, all[2].Claim, time.Now(), "x"))
	wants(t, db, "1/a:succeeded 1/b:dead 1/c:failed parked 1")

	requeue(t, operator, domainevents.Filter{}, "1/b ")
	wants(t, db, "1/a:succeeded 1/b:pending 1/c:failed")
	if done, err := store.Replay(t.Context(), operator, 1); err != nil || len(done.Reopened) != 3 {
		t.Errorf("replayed %+v, %v", done, err)
	}
	if h, err := store.Health(t.Context(), operator, 10); err != nil || h.Owed.N != 3 {
		t.Errorf("health %+v, %v", h, err)
	}
	if quiet, err := store.Quiet(t.Context(), operator, time.Now().Add(time.Hour)); err != nil || len(quiet) != 1 {
		t.Errorf("quiet %+v, %v", quiet, err)
	}

	db.Exec(t, `update domain_event_deliveries set status = 'succeeded', finished_at = now()`)
	_, err := deleter.Exec(t.Context(), `delete from domain_event_deliveries`)
	must(t, err)
	if n := db.Int(t, `select count(*) from domain_event_receivers`); n != 3 {
		t.Errorf("%d receivers are remembered", n)
	}

	for _, c := range []struct {
		conn *pgx.Conn
		sql  string
	}{
		{recorder, `update domain_events set type = 'y'`}, {recorder, `select from domain_event_deliveries`},
		{worker, `delete from domain_event_deliveries`}, {worker, `delete from domain_events`}, {worker, `update domain_events set parked = false`},
		{worker, `insert into domain_event_receivers values ('x', now())`}, {operator, `delete from domain_events`},
		{operator, `update domain_event_receivers set last_success = now()`}, {deleter, `update domain_event_receivers set last_success = now()`},
	} {
		var pg *pgconn.PgError
		if _, err := c.conn.Exec(t.Context(), c.sql); !errors.As(err, &pg) || pg.Code != "42501" {
			t.Errorf("%s as %s: %v", c.sql, c.conn.Config().User, err)
		}
	}
}
