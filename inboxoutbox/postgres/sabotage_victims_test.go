package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/inboxoutbox"
)

var victims = map[string]func(context.Context, *world) error{
	"what is received": func(ctx context.Context, w *world) error {
		receive := func(handler, event string) (inboxoutbox.Receipt, error) {
			return w.store.Receive(ctx, w.conn, handler, event, time.Minute)
		}
		if err := w.exec(`insert into inbox (handler, event_id, attempts, state, completed_at) values ('h', 'done', 4, 'completed', '2020-01-01'), ('h', 'free', 2, 'pending', null), ('g', 'e', 7, 'pending', null);
insert into inbox (handler, event_id, attempts, lock_token, locked_until) values ('g', 'busy', 9, gen_random_uuid(), now() + interval '2 hours'), ('h', 'lapsed', 5, gen_random_uuid(), now() - interval '1 hour'), ('h', 'busy', 6, gen_random_uuid(), now() + interval '1 hour'), ('g', 'lapsed', 9, gen_random_uuid(), now() + interval '2 hours')`); err != nil {
			return err
		}
		var got []string
		tokens := map[inboxoutbox.Token]bool{}
		for _, event := range []string{"e", "free", "lapsed", "busy", "done"} {
			var old string
			_ = w.conn.QueryRow(ctx, "select coalesce(lock_token::text, '') from inbox where handler = 'h' and event_id = $1", event).Scan(&old)
			r, err := receive("h", event)
			if err != nil {
				return fmt.Errorf("event %s: %w", event, err)
			}
			got = append(got, fmt.Sprintf("%s:%s:%d", event, r.Outcome, r.Attempts))
			if r.Outcome != inboxoutbox.New {
				continue
			}
			if string(r.Lock.Token) == old || tokens[r.Lock.Token] {
				return fmt.Errorf("the token of %s is an old one", event)
			}
			tokens[r.Lock.Token] = true
			if err := about("the lock of "+event, r.Lock.Until, time.Minute); err != nil {
				return err
			}
		}
		r, err := receive("h", "busy")
		if err != nil {
			return err
		}
		return errors.Join(differs("received", got, "[e:new:1 free:new:3 lapsed:new:6 busy:in progress:6 done:completed:4]"), about("the other's lock", r.Until, time.Hour),
			w.same(inboxRows, "gbusy|pending|9|t|t ge|pending|7|f|f glapsed|pending|9|t|t hbusy|pending|6|t|t hdone|completed|4|f|f|f he|pending|1|t|t hfree|pending|3|t|t hlapsed|pending|6|t|t"))
	},
	// Somebody else gives an event back between the two looks of a receiver, so that it is found free and taken.
	"what is free between two looks": func(ctx context.Context, w *world) error {
		for _, row := range []struct{ set, want string }{{"lock_token = null, locked_until = null", "true"}, {"locked_until = now() - interval '1 second'", "true"},
			{"locked_until = now() + interval '1 hour'", "false"}, {"state = 'completed', completed_at = now(), lock_token = null, locked_until = null", "false"}} {
			if err := w.exec(`truncate inbox; insert into inbox (handler, event_id, lock_token, locked_until) values ('h', 'e', gen_random_uuid(), now() + interval '1 hour'), ('g', 'e', gen_random_uuid(), now() + interval '1 hour'); update inbox set ` + row.set + " where handler = 'h'"); err != nil {
				return err
			}
			var until, completed *time.Time
			var attempts int
			var free bool
			if err := w.conn.QueryRow(ctx, w.text["received"], "h", "e").Scan(&until, &completed, &attempts, &free); err != nil {
				return err
			}
			if err := differs(row.set+": free", free, row.want); err != nil {
				return err
			}
		}
		return nil
	},
	"what is completed and released": func(ctx context.Context, w *world) error {
		if err := w.exec(`insert into inbox (handler, event_id, lock_token, locked_until) select h, e, '00000000-0000-0000-0000-000000000001', now() + interval '1 hour' from unnest(array['g', 'h']) h, unnest(array['a', 'b', 'c']) e`); err != nil {
			return err
		}
		lock := func(handler, event, token string) inboxoutbox.Lock {
			return inboxoutbox.Lock{Handler: handler, EventID: event, Token: inboxoutbox.Token(token)}
		}
		const mine, other = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"
		complete := func(l inboxoutbox.Lock) error {
			return pgx.BeginFunc(ctx, w.conn, func(tx pgx.Tx) error { return w.store.Complete(ctx, tx, l) })
		}
		return errors.Join(lost("completing under another token", complete(lock("h", "a", other))), lost("releasing under another token", w.store.Release(ctx, w.conn, lock("h", "a", other))),
			complete(lock("h", "a", mine)), w.store.Release(ctx, w.conn, lock("h", "b", mine)),
			w.same(inboxRows, "ga|pending|0|t|t gb|pending|0|t|t gc|pending|0|t|t ha|completed|0|f|f|t hb|pending|0|f|f hc|pending|0|t|t"))
	},
	"what is added": func(ctx context.Context, w *world) error {
		long := time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC)
		for i, d := range []inboxoutbox.Draft{{EventID: "a", Topic: "t", Body: []byte(`{"n": 1}`)}, {EventID: "b", Topic: "u", Key: "k", Headers: map[string]string{"x": "y"}, Body: []byte(`1`), AvailableAt: long}, {EventID: "b", Topic: "v", Body: []byte(`2`)}} {
			var done inboxoutbox.Added
			if err := pgx.BeginFunc(ctx, w.conn, func(tx pgx.Tx) (err error) {
				done, err = w.store.Add(ctx, tx, d)
				return err
			}); err != nil {
				return err
			}
			var b int64
			if err := w.conn.QueryRow(ctx, "select max(record_id) from outbox where event_id = $1", d.EventID).Scan(&b); err != nil {
				return err
			}
			if done.New == (i == 2) || done.Record != b {
				return fmt.Errorf("draft %d is %+v", i+1, done)
			}
		}
		return w.same(`select string_agg(concat_ws('|', event_id, topic, coalesce(key, '-'), headers, body, case when available_at = created_at then 'now' else available_at::date::text end), ' ' order by record_id) from outbox`,
			`a|t|-|{}|{"n": 1}|now b|u|k|{"x": "y"}|1|2020-01-02`)
	},
	"what is claimed": func(ctx context.Context, w *world) error {
		if err := w.exec(`insert into outbox (event_id, topic, body, available_at, delivered_at) values ('a', 't', '1', now() - interval '1 minute', null), ('b', 't', '1', now() - interval '3 minutes', null), ('c', 't', '1', now() + interval '1 hour', null), ('d', 't', '1', now() - interval '1 day', now()), ('e', 't', '1', now() - interval '1 day', null);
insert into outbox (event_id, topic, body, available_at, claim_token, claimed_until, attempts) select e, 't', '1', now() + m * interval '1 minute', gen_random_uuid(), now() + m * interval '1 minute', 1 from (values ('f', -2), ('g', 60)) v (e, m)`); err != nil {
			return err
		}
		other := w.db.Conn(w.t)
		tx, err := other.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		if _, err := tx.Exec(ctx, "select from inbox_outbox.outbox where event_id = 'e' for update"); err != nil {
			return err
		}
		var got []string
		for _, limit := range []int{2, 5} {
			all, err := w.store.Claim(ctx, w.conn, time.Minute, limit)
			if err != nil {
				return err
			}
			for _, r := range all {
				got = append(got, fmt.Sprint(r.EventID, r.Attempts))
				if err := about("the claim of "+r.EventID, r.Claim.Until, time.Minute); err != nil {
					return err
				}
			}
			got = append(got, "/")
		}
		return errors.Join(differs("claimed", got, "[b1 f2 / a1 /]"),
			w.same("select count(distinct claim_token) || ' ' || count(claim_token) from outbox", "4 4"),
			w.same("select string_agg(event_id, '' order by event_id) from outbox where available_at = claimed_until and claimed_until between now() and now() + interval '2 minutes'", "abf"))
	},
	"what is delivered and put off": func(ctx context.Context, w *world) error {
		const mine, other = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"
		if err := w.exec(`insert into outbox (event_id, topic, body, available_at, claim_token, claimed_until) select e, 't', '1', '2030-01-01', '` + mine + `', '2030-01-01' from unnest(array['a', 'b', 'c', 'd']) e`); err != nil {
			return err
		}
		c := func(record int64, token string) inboxoutbox.Claim {
			return inboxoutbox.Claim{Record: record, Token: inboxoutbox.Token(token)}
		}
		return errors.Join(lost("delivering under another token", w.store.Deliver(ctx, w.conn, c(1, other))), lost("putting off under another token", w.store.Retry(ctx, w.conn, c(1, other), time.Time{})),
			w.store.Deliver(ctx, w.conn, c(1, mine)), w.store.Retry(ctx, w.conn, c(2, mine), time.Time{}), w.store.Retry(ctx, w.conn, c(3, mine), time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)),
			w.same(`select string_agg(concat_ws('|', event_id, delivered_at > now() - interval '1 hour', claim_token is not null, claimed_until is not null, case when available_at > now() then available_at::date::text else 'now' end), ' ' order by record_id) from outbox`,
				"a|t|f|f|2030-01-01 b|f|f|now c|f|f|2031-01-01 d|t|t|2030-01-01"))
	},
	"who has a lease": func(ctx context.Context, w *world) error {
		const mine = "00000000-0000-0000-0000-000000000001"
		if err := w.exec(`insert into leases select h, p, 'v', '` + mine + `', now() + case p when 'gone' then interval '-1 hour' else interval '1 hour' end from unnest(array['g', 'h']) h, unnest(array['gone', 'had', 'kept']) p;
update leases set holder = 'u', expires_at = now() + interval '3 hours' where handler = 'g' and partition <> 'gone' or partition = 'kept'`); err != nil {
			return err
		}
		var got []string
		for _, partition := range []string{"new", "gone", "had"} {
			l, ok, err := w.store.Acquire(ctx, w.conn, "h", partition, "w", time.Minute)
			if err != nil {
				return fmt.Errorf("partition %s: %w", partition, err)
			}
			got = append(got, fmt.Sprintf("%s:%t:%s", partition, ok, l.Holder))
			want := time.Minute
			if !ok {
				want = time.Hour
			}
			if err := about("the lease of "+partition, l.ExpiresAt, want); err != nil {
				return err
			}
			if ok && l.Token == mine {
				return fmt.Errorf("the token of %s is an old one", partition)
			}
		}
		return errors.Join(differs("acquired", got, "[new:true:w gone:true:w had:false:v]"),
			w.same(leaseRows, "ggone|v|f ghad|u|t gkept|u|t hgone|w|t hhad|v|t hkept|u|t hnew|w|t"))
	},
	"how long a lease is held": func(ctx context.Context, w *world) error {
		const mine, other = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"
		if err := w.exec(`insert into leases select h, p, 'v', '` + mine + `', now() + case p when 'gone' then interval '-1 hour' else interval '1 hour' end from unnest(array['g', 'h']) h, unnest(array['a', 'b', 'gone']) p`); err != nil {
			return err
		}
		lease := func(partition, token string) inboxoutbox.Lease {
			return inboxoutbox.Lease{Handler: "h", Partition: partition, Token: inboxoutbox.Token(token)}
		}
		_, err := w.store.Renew(ctx, w.conn, lease("a", other), time.Minute)
		_, err2 := w.store.Renew(ctx, w.conn, lease("gone", mine), time.Minute)
		if err := errors.Join(lost("renewing under another token", err), lost("renewing one that has expired", err2), lost("giving back under another token", w.store.Return(ctx, w.conn, lease("a", other)))); err != nil {
			return err
		}
		l, err := w.store.Renew(ctx, w.conn, lease("a", mine), time.Minute)
		if err != nil {
			return err
		}
		return errors.Join(about("the renewed lease", l.ExpiresAt, time.Minute), w.store.Return(ctx, w.conn, lease("b", mine)),
			w.same(`select string_agg(handler || partition || case when expires_at > now() + interval '30 minutes' then '' else '!' end, ' ' order by handler, partition) from leases`, "ga gb ggone! ha! hgone!"))
	},
	"who holds it": func(ctx context.Context, w *world) error {
		// The second look of Acquire: an expired lease is nobody's.
		if err := w.exec(`insert into leases select h, p, h || p, gen_random_uuid(), now() + case p when 'gone' then interval '-1 hour' else interval '1 hour' end from unnest(array['g', 'h']) h, unnest(array['gone', 'had', 'kept']) p`); err != nil {
			return err
		}
		for partition, want := range map[string]string{"had": "[hhad]", "gone": "[]"} {
			rows, err := w.conn.Query(ctx, "select holder from ("+w.text["held"]+") x", "h", partition)
			if err != nil {
				return err
			}
			got, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				return err
			}
			if err := differs("holders of "+partition, got, want); err != nil {
				return err
			}
		}
		return nil
	},
	"health": func(ctx context.Context, w *world) error {
		if err := w.exec(`insert into inbox (handler, event_id, received_at, state, completed_at) select 'h', n::text, timestamptz '2020-01-01' + n * interval '1 day', case when n <= 3 then 'completed' else 'pending' end, case when n <= 3 then now() end from generate_series(1, 6) n;
insert into outbox (event_id, topic, body, available_at, delivered_at) select n::text, 't', '1', case when n > 6 then timestamptz '2999-01-01' else timestamptz '2020-02-01' + n * interval '1 day' end, case when n <= 3 then now() end from generate_series(1, 8) n;
insert into leases select 'h', n::text, 'v', gen_random_uuid(), now() + (n - 3) * interval '1 hour' from generate_series(1, 7) n`); err != nil {
			return err
		}
		h, err := w.store.Health(ctx, w.conn, 100)
		if err != nil {
			return err
		}
		if err := differs("health", fmt.Sprintf("%s since %s, %s since %s, %s", h.Unfinished, h.OldestUnfinished.Format(time.DateOnly), h.Undelivered, h.Waiting.Format(time.DateOnly), h.Leases),
			"3 since 2020-01-05, 5 since 2020-02-05, 4"); err != nil {
			return err
		}
		var inbox, outbox, leases int
		var oldest, waiting *time.Time
		if err := w.conn.QueryRow(ctx, w.text["health"], int64(1)).Scan(&inbox, &oldest, &outbox, &waiting, &leases); err != nil {
			return err
		}
		if err := differs("up to one of each", fmt.Sprint(inbox, outbox, leases), "1 1 1"); err != nil {
			return err
		}
		if err := w.exec("delete from outbox where delivered_at is null and available_at < now()"); err != nil {
			return err
		}
		h, err = w.store.Health(ctx, w.conn, 100)
		return errors.Join(err, differs("waiting", h.Waiting.IsZero(), true))
	},
}
