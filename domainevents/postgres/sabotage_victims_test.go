package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/domainevents"
)

var victims = map[string]func(context.Context, *world) error{
	"what is recorded": func(ctx context.Context, w *world) error {
		own := own(w.t)
		long := time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC)
		for i, d := range []domainevents.Draft{
			{Type: "a", Retention: domainevents.UntilSettled}, {Type: "b", Retention: own}, {Type: "c", Suppressed: "why"},
			{Type: "d", Version: 2, Payload: json.RawMessage(`{"n": 1}`), OccurredAt: long, DedupeKey: "k"},
			{Type: "e", DedupeKey: "k"}, {Type: "f", DedupeKey: "other"},
		} {
			var targets []domainevents.Target
			if d.Suppressed == "" {
				targets = []domainevents.Target{{Receiver: "r", Target: "x", DueAt: long}, {Receiver: "s"}}
			}
			var done domainevents.Recorded
			err := pgx.BeginFunc(ctx, w.conn, func(tx pgx.Tx) (err error) {
				done, err = w.store.Record(ctx, tx, d, targets...)
				return err
			})
			if err != nil {
				return err
			}
			if again := i == 4; done.New == again || again && done.Event != 4 {
				return fmt.Errorf("draft %d is %+v", i+1, done)
			}
		}
		return errors.Join(
			w.same(`select string_agg(concat_ws('|', type, version, payload, case when occurred_at = recorded_at then 'now' else occurred_at::text end, coalesce(dedupe_key, '-'), coalesce(suppressed, '-'), coalesce(retention_policy, '-'), coalesce(retention_seconds::text, '-')), ' ' order by type) from domain_events`,
				`a|1|{}|now|-|-|SETTLED|- b|1|{}|now|-|-|-|3600 c|1|{}|now|-|why|-|- d|2|{"n": 1}|2020-01-02 00:00:00+00|k|-|-|- f|1|{}|now|other|-|-|-`),
			w.same(`select string_agg(e.type || d.receiver || d.target || ':' || d.status || case when d.due_at = e.recorded_at then 'now' else d.due_at::date::text end, ' ' order by e.type, d.receiver) from domain_event_deliveries d join domain_events e on e.id = d.event_id`,
				"arx:pending2020-01-02 as:pendingnow brx:pending2020-01-02 bs:pendingnow drx:pending2020-01-02 ds:pendingnow frx:pending2020-01-02 fs:pendingnow"))
	},
	"what is claimed": func(ctx context.Context, w *world) error {
		w.filled(`insert into domain_events (type, payload) select 'x', '{}' from generate_series(1, 9);
insert into domain_event_deliveries (event_id, receiver, due_at, status, last_error) values (1, 'a', now() - interval '1 minute', 'pending', null), (2, 'a', now() - interval '3 minutes', 'failed', 'no'), (3, 'a', now() + interval '1 hour', 'pending', null);
insert into domain_event_deliveries (event_id, receiver, due_at, status, claimed_by, claimed_at, claimed_until) select n, 'a', now() - interval '1 day', 'claimed', 'v', now() - interval '1 day', now() - u * interval '1 second' from (values (4, 120), (5, -3600), (9, 30), (8, 300)) as v (n, u);
insert into domain_event_deliveries (event_id, receiver, due_at, status, finished_at) values (6, 'a', now() - interval '1 hour', 'dead', now());
insert into domain_event_deliveries (event_id, receiver, due_at) values (7, 'a', now() - interval '4 minutes')`)
		tx, err := w.holds(ctx, "select from domain_event_deliveries where event_id in (7, 8) for update")
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		// As many are locked as may be claimed, of each of the two ranges.
		err = pgx.BeginFunc(ctx, w.conn, func(own pgx.Tx) error {
			if _, err := w.store.Claim(ctx, own, "w", time.Minute, 1); err != nil {
				return err
			}
			if err := w.same("select count(*) from (select from domain_event_deliveries for update skip locked) x", "5"); err != nil {
				return err
			}
			return errors.New("back")
		})
		if err == nil || err.Error() != "back" {
			return err
		}
		var got []string
		for _, limit := range []int{1, 1, 2, 5} {
			all, err := w.store.Claim(ctx, w.conn, "w", time.Minute, limit)
			if err != nil {
				return err
			}
			for _, d := range all {
				got = append(got, fmt.Sprintf("%d%s%s", d.Event.ID, d.Receiver, d.LastError))
				if d.Attempts != 1 || d.Claim.By != "w" || d.Claim.Until.Sub(d.Claim.At) != time.Minute || time.Since(d.Claim.At).Abs() > time.Minute {
					return fmt.Errorf("%+v", d)
				}
			}
			got = append(got, "/")
		}
		if err := differs("claimed", got, "[2ano / 4a / 1a 9a / /]"); err != nil {
			return err
		}
		return w.same("select "+deliveries+" from domain_event_deliveries", "1a:claimed 2a:claimed 3a:pending 4a:claimed 5a:claimed 6a:dead 7a:pending 8a:claimed 9a:claimed")
	},
	"what is acknowledged": func(ctx context.Context, w *world) error {
		w.filled(`insert into domain_events (type, payload) select 'x', '{}' from generate_series(1, 6);
insert into domain_event_deliveries (event_id, receiver, due_at, status, claimed_by, claimed_at, claimed_until) select n, 'a', '2020-01-01', 'claimed', 'w', '2026-01-01', now() + interval '1 hour' from generate_series(1, 6) n`)
		at, later := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		claim := func(n int64) domainevents.Claim { return domainevents.Claim{Delivery: n, By: "w", At: at} }
		for what, c := range map[string]domainevents.Claim{"by another": {Delivery: 1, By: "v", At: at}, "at another time": {Delivery: 1, By: "w", At: at.Add(time.Microsecond)}} {
			if err := w.store.Succeed(ctx, w.conn, c); !errors.Is(err, domainevents.ErrClaimLost) {
				return fmt.Errorf("a claim %s ended with %w", what, cmpErr(err))
			}
		}
		err := errors.Join(w.store.Succeed(ctx, w.conn, claim(1)), w.store.Fail(ctx, w.conn, claim(2), later, "no"), w.store.Dead(ctx, w.conn, claim(3), "never"),
			w.store.Orphan(ctx, w.conn, claim(4), "who"), w.store.Cancel(ctx, w.conn, claim(5), ""))
		if err != nil {
			return err
		}
		return w.same(`select string_agg(concat_ws('|', status, due_at::date, coalesce(last_error, '-'), finished_at is not null, finished_at > now() - interval '1 hour'), ' ' order by id) from domain_event_deliveries`,
			"succeeded|2020-01-01|-|t|t failed|2030-01-01|no|f dead|2020-01-01|never|t|t orphaned|2020-01-01|who|t|t cancelled|2020-01-01|-|t|t claimed|2020-01-01|-|f")
	},
	"what is requeued": func(ctx context.Context, w *world) error {
		for _, c := range []struct {
			f         domainevents.Filter
			got, left string
		}{
			{domainevents.Filter{Limit: 10}, "2r 2s 3r 4s", "1p:pending 2o:succeeded 2r:pending 2s:pending 3r:pending 4s:pending"},
			{domainevents.Filter{Limit: 1}, "2r", "1p:pending 2o:succeeded 2r:pending 2s:dead 3r:orphaned 4s:dead"},
			{domainevents.Filter{Limit: 10, Receiver: "s"}, "2s 4s", "1p:pending 2o:succeeded 2r:dead 2s:pending 3r:orphaned 4s:pending"},
			{domainevents.Filter{Limit: 1, Receiver: "s"}, "2s", "1p:pending 2o:succeeded 2r:dead 2s:pending 3r:orphaned 4s:dead"},
			{domainevents.Filter{Limit: 10, Type: "y"}, "3r", "1p:pending 2o:succeeded 2r:dead 2s:dead 3r:pending 4s:dead"},
			{domainevents.Filter{Limit: 10, Type: "x", Receiver: "s"}, "2s", "1p:pending 2o:succeeded 2r:dead 2s:pending 3r:orphaned 4s:dead"},
			{domainevents.Filter{Limit: 10, Event: 4}, "4s", "1p:pending 2o:succeeded 2r:dead 2s:dead 3r:orphaned 4s:pending"},
			{domainevents.Filter{Limit: 10, Event: 4, Type: "x"}, "", "1p:pending 2o:succeeded 2r:dead 2s:dead 3r:orphaned 4s:dead"},
		} {
			w.filled(letters)
			done, err := w.store.Requeue(ctx, w.conn, c.f)
			if err != nil {
				return fmt.Errorf("%+v: %w", c.f, err)
			}
			var got []string
			for _, r := range done.Reopened {
				got = append(got, fmt.Sprintf("%d%s", r.Event, r.Receiver))
			}
			if err := errors.Join(differs(fmt.Sprintf("%+v", c.f), strings.Join(got, " "), c.got), differs("gone", len(done.Gone), 0),
				w.same("select "+deliveries+" from domain_event_deliveries", c.left),
				w.same("select bool_and((attempts = 0 and due_at > now() - interval '1 hour') = (status = 'pending' and receiver <> 'p')) from domain_event_deliveries", "true")); err != nil {
				return err
			}
		}
		return nil
	},
	"which events are locked": func(ctx context.Context, w *world) error {
		for _, name := range []string{"lock dead", "lock dead of a receiver"} {
			var receiver *string
			if name != "lock dead" {
				s := "s"
				receiver = &s
			}
			w.filled(letters + "; insert into domain_event_deliveries (event_id, receiver) values (5, 's')")
			err := pgx.BeginFunc(ctx, w.conn, func(tx pgx.Tx) error {
				for _, limit := range []int64{1, 10} {
					rows, err := tx.Query(ctx, w.text[name], receiver, nil, limit)
					if err != nil {
						return err
					}
					n := 0
					for ; rows.Next(); n++ {
					}
					if err := rows.Err(); err != nil {
						return err
					}
					want := map[bool]int{true: 1, false: 3}[limit == 1]
					if name != "lock dead" && limit > 1 {
						want = 2
					}
					if err := errors.Join(differs(fmt.Sprintf("%s, limit %d: events", name, limit), n, want),
						w.same("select count(*) from (select from domain_events for update skip locked) x", fmt.Sprint(5-want))); err != nil {
						return err
					}
				}
				return errors.New("back")
			})
			if err == nil || err.Error() != "back" {
				return err
			}
			// In the order of their ids: while it waits for the last one, it holds those before it.
			w.filled(letters)
			other, err := w.holds(ctx, "select from domain_events where id = 4 for update")
			if err != nil {
				return err
			}
			err = w.waits(ctx, w.conn, func() error {
				tx, err := w.conn.Begin(ctx)
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback(ctx) }()
				_, err = tx.Exec(ctx, w.text[name], receiver, nil, int64(10))
				return err
			}, func() error {
				held := map[bool]string{true: "2 3 4", false: "2 4"}[name == "lock dead"]
				return errors.Join(w.same("select string_agg(id::text, ' ' order by id) from domain_events where id not in (select id from domain_events for update skip locked)", held), other.Rollback(ctx))
			})
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	},
	"a requeue or replay beside a sweep": func(ctx context.Context, w *world) error {
		for _, f := range []domainevents.Filter{{Limit: 10}, {Limit: 10, Receiver: "s"}, {Limit: 10, Event: 4}} {
			w.filled(letters)
			sweep, err := w.holds(ctx, "select from domain_events where id = 4 for update; delete from domain_event_deliveries where event_id = 4; delete from domain_events where id = 4")
			if err != nil {
				return err
			}
			var done domainevents.Requeued
			if err := w.waits(ctx, w.conn, func() (err error) {
				done, err = w.store.Requeue(ctx, w.conn, f)
				return err
			}, func() error { return sweep.Commit(ctx) }); err != nil {
				return err
			}
			if err := differs(fmt.Sprintf("%+v: gone", f), done.Gone, "[4]"); err != nil {
				return err
			}
		}
		return nil
	},
	// A worker holds a delivery, without its event, and makes something else of it.
	"what a worker does while a requeue or replay waits": func(ctx context.Context, w *world) error {
		w.filled(letters)
		worker, err := w.holds(ctx, "update domain_event_deliveries set status = 'cancelled' where event_id = 2 and receiver = 's'")
		if err != nil {
			return err
		}
		if err := w.waits(ctx, w.conn, func() error {
			_, err := w.store.Requeue(ctx, w.conn, domainevents.Filter{Limit: 10, Event: 2})
			return err
		}, func() error { return worker.Commit(ctx) }); err != nil {
			return err
		}
		if err := w.same("select "+deliveries+" from domain_event_deliveries where event_id = 2", "2o:succeeded 2r:pending 2s:cancelled"); err != nil {
			return err
		}
		w.filled(letters)
		if worker, err = w.holds(ctx, "update domain_event_deliveries set status = 'claimed', claimed_by = 'w', claimed_at = now(), claimed_until = now() + interval '1 hour', finished_at = null where event_id = 2 and receiver = 's'"); err != nil {
			return err
		}
		var done domainevents.Replayed
		if err := w.waits(ctx, w.conn, func() (err error) {
			done, err = w.store.Replay(ctx, w.conn, 2)
			return err
		}, func() error { return worker.Commit(ctx) }); err != nil {
			return err
		}
		return errors.Join(differs("under way", done.Underway, 1), w.same("select "+deliveries+" from domain_event_deliveries where event_id = 2", "2o:pending 2r:pending 2s:claimed"))
	},
	// The rows of an event are locked in the order of their key, so that two who reopen it do not block each other.
	"in which order deliveries are locked": func(ctx context.Context, w *world) error {
		for name, args := range map[string][]any{"reopen all": {int64(2)}, "reopen dead": {[]int64{2}, nil, int64(10)}} {
			w.filled(letters)
			other, err := w.holds(ctx, "select from domain_event_deliveries where event_id = 2 and receiver = 's' for update")
			if err != nil {
				return err
			}
			if err := w.waits(ctx, w.conn, func() error {
				_, err := w.conn.Exec(ctx, w.text[name], args...)
				return err
			}, func() error {
				return errors.Join(w.same("select string_agg(receiver, '' order by receiver) from domain_event_deliveries where event_id = 2 and status <> 'succeeded' and id not in (select id from domain_event_deliveries for update skip locked)", "rs"), other.Rollback(ctx))
			}); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	},
	"what is replayed": func(ctx context.Context, w *world) error {
		w.filled(letters + `; insert into domain_event_deliveries (event_id, receiver, status, claimed_by, claimed_at, claimed_until) values (2, 'b', 'claimed', 'w', now(), now() + interval '1 hour'), (5, 'b', 'claimed', 'w', now(), now() + interval '1 hour');
update domain_event_deliveries set attempts = 3, due_at = '2020-01-01'`)
		for event, want := range map[int64]string{2: "[o r s] 1", 5: "[] 1"} {
			done, err := w.store.Replay(ctx, w.conn, event)
			if err != nil {
				return err
			}
			got := []string{}
			for _, r := range done.Reopened {
				got = append(got, r.Receiver)
			}
			if err := differs(fmt.Sprintf("replay of %d", event), fmt.Sprint(got, " ", done.Underway), want); err != nil {
				return err
			}
		}
		return errors.Join(w.same("select "+deliveries+" from domain_event_deliveries", "1p:pending 2b:claimed 2o:pending 2r:pending 2s:pending 3r:orphaned 4s:dead 5b:claimed"),
			w.same("select string_agg(receiver, '' order by receiver) from domain_event_deliveries where attempts = 0 and due_at > now() - interval '1 hour'", "ors"))
	},
	"the order of dead letters": func(ctx context.Context, w *world) error {
		const in = "select concat_ws(' ', current_setting('enable_sort'), current_setting('enable_bitmapscan'), current_setting('enable_seqscan'), current_setting('jit'))"
		err := pgx.BeginFunc(ctx, w.conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, w.text["in order"]); err != nil {
				return err
			}
			var got string
			if err := tx.QueryRow(ctx, in).Scan(&got); err != nil {
				return err
			}
			return differs("settings", got, "off off off off")
		})
		return err
	},
	"health": func(ctx context.Context, w *world) error {
		w.filled(`insert into domain_events (type, payload, recorded_at, retention_policy) select 'x', '{}', timestamptz '2020-01-01' + n * interval '1 day', case when n = 19 then 'PERHAPS' when n between 20 and 21 then 'ODD' when n between 22 and 24 then 'WEIRD' when n = 25 then 'SETTLED' when n in (6, 7, 8) then 'SUCCEEDED' end from generate_series(1, 26) n;
insert into domain_event_deliveries (event_id, receiver, status, due_at) values (2, 'a', 'pending', now()), (2, 'b', 'pending', now()), (3, 'a', 'failed', now() + interval '1 day');
insert into domain_event_deliveries (event_id, receiver, status, claimed_by, claimed_at, claimed_until) values (4, 'a', 'claimed', 'w', now(), now() + interval '1 day'), (4, 'b', 'claimed', 'w', now(), now() - interval '1 day'), (5, 'b', 'claimed', 'w', now(), now() - interval '1 day');
insert into domain_event_deliveries (event_id, receiver, status, finished_at) values (6, 'a', 'dead', now()), (7, 'a', 'orphaned', now()), (8, 'b', 'dead', now()), (9, 'a', 'succeeded', now()), (9, 'b', 'cancelled', now()), (10, 'b', 'orphaned', now())`)
		h, err := w.store.Health(ctx, w.conn, 100)
		if err != nil {
			return err
		}
		if err := errors.Join(differs("health", fmt.Sprintf("%d %d %d %d %s", h.Owed.N, h.Dead.N, h.Lapsed.N, h.Parked.N, h.OldestOwed.Format(time.DateOnly)), "6 4 2 3 2020-01-03"),
			differs("unknown", h.Unknown, "map[ODD:2 PERHAPS:1 WEIRD:3]")); err != nil {
			return err
		}
		// Each is read up to the bound.
		var owed, dead, lapsed, parked int
		var at *time.Time
		if err := w.conn.QueryRow(ctx, w.text["counts"], int64(1)).Scan(&owed, &at, &dead, &lapsed, &parked); err != nil {
			return err
		}
		if err := differs("up to one of each", fmt.Sprint(owed, dead, lapsed, parked), "2 1 1 1"); err != nil {
			return err
		}
		for _, bound := range []int64{1, 2, 100} {
			rows, err := w.conn.Query(ctx, w.text["words"], bound)
			if err != nil {
				return err
			}
			var word, got string
			var n, total int
			if _, err := pgx.ForEachRow(rows, []any{&word, &n}, func() error { got, total = got+fmt.Sprint(word, n), total+n; return nil }); err != nil {
				return err
			}
			if err := differs(fmt.Sprintf("events of unknown words up to %d", bound), total, min(bound, 6)); err != nil {
				return err
			}
			if bound == 100 && got != "ODD2PERHAPS1WEIRD3" {
				return fmt.Errorf("unknown words are %s", got)
			}
		}
		return nil
	},
	"quiet receivers": func(ctx context.Context, w *world) error {
		w.filled(`insert into domain_events (type, payload) select 'x', '{}' from generate_series(1, 3);
insert into domain_event_deliveries (event_id, receiver, status, finished_at) values (1, 'a', 'succeeded', '2020-01-01'), (2, 'a', 'succeeded', '2020-03-01'), (3, 'a', 'dead', '2025-01-01'), (1, 'b', 'succeeded', '2020-02-01'), (1, 'c', 'succeeded', '2025-01-01'), (1, 'd', 'dead', '2020-01-01');
insert into domain_event_receivers values ('a', '2020-01-05'), ('e', '2020-01-07'), ('f', '2025-01-01')`)
		quiet, err := w.store.Quiet(ctx, w.conn, time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))
		if err != nil {
			return err
		}
		var got []string
		for _, r := range quiet {
			got = append(got, r.Name+r.LastSuccess.Format("0102"))
		}
		return differs("quiet", got, "[e0107 b0201 a0301]")
	},
}

// letters are an event with what is owed, and three with dead letters; another one has none.
const letters = `insert into domain_events (type, payload) values ('x', '{}'), ('x', '{}'), ('y', '{}'), ('z', '{}'), ('x', '{}');
insert into domain_event_deliveries (event_id, receiver, status, due_at, attempts, finished_at) values (1, 'p', 'pending', '2020-01-01', 3, null), (2, 's', 'dead', '2020-01-01', 3, now()), (2, 'r', 'dead', '2020-01-01', 3, now()),
  (2, 'o', 'succeeded', '2020-01-01', 3, now()), (4, 's', 'dead', '2020-01-01', 3, now()), (3, 'r', 'orphaned', '2020-01-01', 3, now())`
