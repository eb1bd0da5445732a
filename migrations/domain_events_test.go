package migrations

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/domainevents"
)

func TestDomainEventsAreInstalledAndGoDownEmptyOnly(t *testing.T) {
	for table, fill := range map[string]string{
		"domain_events":           `insert into domain_events (type, payload) values ('x', '{}')`,
		"domain_event_deliveries": `set session_replication_role = replica; insert into domain_event_deliveries (event_id, receiver) values (7, 'r')`,
		"domain_event_receivers":  `insert into domain_event_receivers values ('r', now())`,
	} {
		t.Run(table, func(t *testing.T) {
			db := withEvents.New(t)
			m := migrator(t, db.DSN, ofEvents)
			state(t, m, "up to date")
			up(t, m)
			db.Exec(t, fill)
			down(t, m, "2 add_indexes")
			if _, err := m.Down(bounded(t)); !errors.Is(err, ErrHoldsRows) {
				t.Errorf("down over rows: %v", err)
			}
			if n := db.Int(t, `select count(*) from `+table); n != 1 {
				t.Errorf("%d rows are left", n)
			}
			db.Exec(t, `truncate domain_events, domain_event_deliveries, domain_event_receivers`)
			down(t, m, "1 create_tables")
			if n := db.Int(t, `select count(*) from pg_class where relnamespace = 'public'::regnamespace and relname like 'domain%'`); n != 0 {
				t.Errorf("%d relations are left", n)
			}
			if n := db.Int(t, `select count(*) from pg_proc where pronamespace = 'public'::regnamespace`); n != 0 {
				t.Errorf("%d functions are left", n)
			}
		})
	}
}

// Each constraint refuses what it is for, by its name, and nothing beside it.
func TestTheTablesOfDomainEventsRefuseWhatCannotBe(t *testing.T) {
	db := withEvents.New(t)
	conn := db.Conn(t)
	db.Exec(t, `insert into domain_events (type, payload) select 'x', '{}' from generate_series(1, 50)`)
	event := func(columns, values string) string {
		return fmt.Sprintf(`insert into domain_events (type, payload, %s) values ('x', '{}', %s)`, columns, values)
	}
	delivery := func(columns, values string) string {
		return fmt.Sprintf(`insert into domain_event_deliveries (event_id, receiver, target, %s) values (1, 'r', gen_random_uuid()::text, %s)`, columns, values)
	}
	const claim = "status, claimed_by, claimed_at, claimed_until"
	for _, c := range []struct{ sql, constraint string }{
		{`insert into domain_events (type, payload) values ('', '{}')`, "domain_events_type_check"},
		{event("version", "0"), "domain_events_version_check"},
		{event("version", "1"), ""},
		{event("retention_seconds", "1"), ""},
		{event("retention_seconds", "2147483647"), ""},
		{event("retention_seconds", "0"), "domain_events_window_check"},
		{event("retention_seconds", "-1"), "domain_events_window_check"},
		{event("retention_policy, retention_seconds", "'SETTLED', 1"), "domain_events_retention_check"},
		{event("retention_policy, retention_seconds", "'LATER', 1"), "domain_events_retention_check"},
		{event("retention_policy", "'LATER'"), ""},
		{event("dedupe_key", "'k1'"), ""},
		{event("dedupe_key", "'k1'"), "domain_events_dedupe"},
		{event("dedupe_key, retention_seconds", "'k2', 1"), ""},
		{event("dedupe_key, retention_policy", "'k3', 'SUCCEEDED'"), "domain_events_dedupe_check"},
		{event("dedupe_key, retention_policy", "'k3', 'SETTLED'"), "domain_events_dedupe_check"},
		{event("dedupe_key, retention_policy", "'k3', 'LATER'"), ""},
		{event("dedupe_key, retention_policy", "null, 'SETTLED'"), ""},
		{event("parked", "true"), "domain_events_parked_check"},
		{event("parked, retention_policy", "true, 'SETTLED'"), "domain_events_parked_check"},
		{event("parked, retention_policy", "true, 'SUCCEEDED'"), ""},
		{`insert into domain_event_deliveries (event_id, receiver) values (1, '')`, "domain_event_deliveries_receiver_check"},
		{`insert into domain_event_deliveries (event_id, receiver) values (999, 'r')`, "domain_event_deliveries_event_fkey"},
		{`insert into domain_event_deliveries (event_id, receiver) values (2, 'r')`, ""},
		{`insert into domain_event_deliveries (event_id, receiver) values (2, 'r')`, "domain_event_deliveries_key"},
		{`insert into domain_event_deliveries (event_id, receiver, target) values (2, 'r', 't')`, ""},
		{`delete from domain_events where id = 2`, "domain_event_deliveries_event_fkey"},
		{delivery("attempts", "-1"), "domain_event_deliveries_attempts_check"},
		{delivery("status", "'done'"), "domain_event_deliveries_status_check"},
		{delivery(claim, "'claimed', 'w', now(), now()"), ""},
		{delivery(claim, "'claimed', 'w', now(), null"), "domain_event_deliveries_claim_check"},
		{delivery(claim, "'claimed', null, now(), now()"), "domain_event_deliveries_claim_check"},
		{delivery("status", "'claimed'"), "domain_event_deliveries_claim_check"},
		{delivery(claim, "'pending', 'w', now(), now()"), "domain_event_deliveries_claim_check"},
		{delivery(claim, "'failed', 'w', null, null"), "domain_event_deliveries_claim_check"},
	} {
		_, err := conn.Exec(t.Context(), c.sql)
		var pg *pgconn.PgError
		switch {
		case c.constraint == "" && err != nil:
			t.Errorf("%s: %v", c.sql, err)
		case c.constraint != "" && (!errors.As(err, &pg) || pg.ConstraintName != c.constraint):
			t.Errorf("%s: %v, want %s", c.sql, err, c.constraint)
		}
	}
	for _, s := range domainevents.Statuses() {
		if s == domainevents.Claimed {
			continue
		}
		for finished, right := range map[string]bool{"now()": s.Terminal(), "null": !s.Terminal()} {
			_, err := conn.Exec(t.Context(), delivery("status, finished_at", "'"+string(s)+"', "+finished))
			var pg *pgconn.PgError
			if right != (err == nil) || (err != nil && (!errors.As(err, &pg) || pg.ConstraintName != "domain_event_deliveries_finished_check")) {
				t.Errorf("%s finished at %s: %v", s, finished, err)
			}
		}
	}
}

// The own window is added in UTC: a day is 24 hours, whatever the session's zone.
func TestAnOwnWindowIsAddedToTheTimeOfRecording(t *testing.T) {
	db := withEvents.New(t)
	db.Exec(t, `
set timezone = 'Europe/Berlin';
insert into domain_events (type, payload, recorded_at, retention_seconds) values ('x', '{}', '2026-03-28 12:00 Europe/Berlin', 86400)`)
	if got := db.Text(t, `select (expires_at - recorded_at)::text from domain_events`); got != "1 day" && got != "24:00:00" {
		t.Errorf("it is kept for %s", got)
	}
	db.Exec(t, `insert into domain_events (type, payload, retention_policy) values ('y', '{}', 'SETTLED')`)
	if n := db.Int(t, `select count(*) from domain_events where expires_at is null`); n != 1 {
		t.Errorf("%d have no end of their own, want 1", n)
	}
}

// An event under SUCCEEDED is parked exactly while a delivery of it is a dead letter.
func TestADeadLetterParksItsEvent(t *testing.T) {
	db := withEvents.New(t)
	insert := func(event, receiver string, s domainevents.Status) string {
		finished, claim := "null", "null, null, null"
		if s.Terminal() {
			finished = "now()"
		}
		if s == domainevents.Claimed {
			claim = "'w', now(), now()"
		}
		return fmt.Sprintf(`insert into domain_event_deliveries (event_id, receiver, status, finished_at, claimed_by, claimed_at, claimed_until)
values (%s, '%s', '%s', %s, %s)`, event, receiver, s, finished, claim)
	}
	update := func(receiver string, s domainevents.Status) string {
		finished := "null"
		if s.Terminal() {
			finished = "now()"
		}
		return fmt.Sprintf(`update domain_event_deliveries set status = '%s', finished_at = %s where receiver = '%s'`, s, finished, receiver)
	}
	parked := func(want string) {
		t.Helper()
		if got := db.Text(t, `select coalesce(string_agg(id::text, ',' order by id), '') from domain_events where parked`); got != want {
			t.Errorf("parked %q, want %q", got, want)
		}
	}
	db.Exec(t, `insert into domain_events (type, payload, retention_policy, retention_seconds) values
('x', '{}', 'SUCCEEDED', null), ('x', '{}', 'SETTLED', null), ('x', '{}', null, null), ('x', '{}', null, 5), ('x', '{}', 'LATER', null)`)
	for _, s := range domainevents.Statuses() { // as they come
		db.Exec(t, insert("1", string(s), s))
		want := ""
		if s.DeadLetter() {
			want = "1"
		}
		parked(want)
		db.Exec(t, `delete from domain_event_deliveries; update domain_events set parked = false`)
	}
	for id := 1; id <= 5; id++ { // under no other rule
		db.Exec(t, insert(fmt.Sprint(id), "a", "pending"))
		db.Exec(t, insert(fmt.Sprint(id), "b", "pending"))
	}
	parked("")
	db.Exec(t, update("a", "dead"))
	parked("1")
	db.Exec(t, update("b", "orphaned"))
	db.Exec(t, update("a", "orphaned"))
	parked("1")
	db.Exec(t, update("a", "pending"))
	parked("1") // b is still there
	db.Exec(t, update("b", "succeeded"))
	parked("")
	db.Exec(t, `update domain_event_deliveries set status = 'dead', finished_at = now()`)
	parked("1")
	db.Exec(t, `update domain_event_deliveries set status = 'cancelled'`)
	parked("")
}

// The newest success of each receiver outlives its delivery, whoever deletes it.
func TestWhatIsDeletedIsRememberedFirst(t *testing.T) {
	db := withEvents.New(t)
	db.Exec(t, `
insert into domain_events (type, payload) select 'x', '{}' from generate_series(1, 4);
insert into domain_event_deliveries (event_id, receiver, status, finished_at) values
  (1, 'a', 'succeeded', '2026-01-03Z'), (1, 'b', 'succeeded', '2026-01-01Z'), (1, 'c', 'dead', '2026-01-09Z'),
  (2, 'a', 'succeeded', '2026-01-05Z'), (2, 'b', 'cancelled', '2026-01-09Z'),
  (3, 'a', 'succeeded', '2026-01-02Z'), (3, 'b', 'succeeded', '2026-01-04Z'), (3, 'd', 'succeeded', '2026-01-01Z')`)
	remembered := func(want string) {
		t.Helper()
		const all = `select coalesce(string_agg(receiver || extract(day from last_success at time zone 'UTC'), ' ' order by receiver), '') from domain_event_receivers`
		if got := db.Text(t, all); got != want {
			t.Errorf("remembered %q, want %q", got, want)
		}
	}
	remembered("")
	db.Exec(t, `delete from domain_event_deliveries where event_id = 4`)
	remembered("")
	db.Exec(t, `delete from domain_event_deliveries where event_id = 2`)
	remembered("a5")
	db.Exec(t, `delete from domain_event_deliveries where event_id = 1`)
	remembered("a5 b1") // never backwards, and no end but a success
	db.Exec(t, `update domain_event_deliveries set status = 'pending', finished_at = null where receiver in ('a', 'd')`)
	remembered("a5 b1 d1") // neither is it lost when a delivery is reopened
	db.Exec(t, `delete from domain_event_deliveries`)
	remembered("a5 b4 d1")
}

// The functions run as their owner: nobody else may hang them on a table of his own.
func TestTheTriggersFunctionsAreNobodysToUse(t *testing.T) {
	db := withEvents.New(t)
	if n := db.Int(t, `
select count(*) from pg_proc p
 where p.proname like 'domain_events%' and p.prosecdef and p.proconfig = '{"search_path=pg_catalog, pg_temp"}'
   and not exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0)`); n != 3 {
		t.Errorf("%d of 3 functions are closed to others", n)
	}
}
