package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/inboxoutbox/postgres"
)

func TestTheHealthIsWhatIsNotFinished(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	health := func(bound int) inboxoutbox.Health {
		t.Helper()
		h, err := store.Health(bounded(t), conn, bound)
		must(t, err)
		return h
	}
	if h := health(1); h != (inboxoutbox.Health{}) {
		t.Errorf("of nothing: %+v", h)
	}
	db.Exec(t, `
insert into inbox_outbox.inbox (handler, event_id, received_at) select 'h', g::text, '2026-01-10Z'::timestamptz - g * interval '1 day' from generate_series(1, 3) g;
insert into inbox_outbox.inbox (handler, event_id, state, received_at, completed_at) values ('h', 'done', 'completed', '2020-01-01', now());
insert into inbox_outbox.outbox (event_id, topic, body, available_at, delivered_at) values
  ('later', 't', '{}', now() + interval '1 hour', null), ('now', 't', '{}', '2026-02-01Z', null), ('done', 't', '{}', '2020-01-01', now());
insert into inbox_outbox.leases values ('h', 'a', 'w', gen_random_uuid(), now() + interval '1 hour'), ('h', 'b', 'w', gen_random_uuid(), now() - interval '1 second')`)
	h := health(3)
	if h.Unfinished != (inboxoutbox.Count{N: 3}) || h.Undelivered != (inboxoutbox.Count{N: 2}) || h.Leases != (inboxoutbox.Count{N: 1}) {
		t.Errorf("health %+v", h)
	}
	if want := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC); h.Waiting != want {
		t.Errorf("waiting since %s, want %s", h.Waiting, want)
	}
	if want := time.Date(2026, 1, 7, 0, 0, 0, 0, time.UTC); h.OldestUnfinished != want {
		t.Errorf("the oldest is of %s", h.OldestUnfinished)
	}
	if h := health(2); h.Unfinished != (inboxoutbox.Count{N: 2, AtLeast: true}) || h.Undelivered != (inboxoutbox.Count{N: 2}) {
		t.Errorf("up to two: %+v", h)
	}
	db.Exec(t, `update inbox_outbox.outbox set available_at = now() + interval '1 hour'`)
	if h := health(3); !h.Waiting.IsZero() || h.Undelivered.N != 2 {
		t.Errorf("nothing is ready: %+v", h)
	}
	for _, bound := range []int{0, -1, postgres.MaxBound + 1} {
		if _, err := store.Health(bounded(t), conn, bound); !errors.Is(err, inboxoutbox.ErrLimit) {
			t.Errorf("bound %d: %v", bound, err)
		}
	}
}
