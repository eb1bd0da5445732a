package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prunectl/prunectl/domainevents"
)

func TestQuietIsTheLaterOfWhatIsRememberedAndWhatIsThere(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	record(t, conn, domainevents.Draft{}, to("both", "living", "gone", "dead")...)
	record(t, conn, domainevents.Draft{}, to("both", "living", "fresh")...)
	db.Exec(t, `
update domain_event_deliveries set status = 'succeeded', finished_at = '2026-01-01Z';
update domain_event_deliveries set finished_at = '2026-01-03Z' where event_id = 2;
update domain_event_deliveries set finished_at = '2026-01-09Z' where receiver = 'fresh';
update domain_event_deliveries set status = 'dead' where receiver = 'dead';
delete from domain_event_receivers;
insert into domain_event_receivers values ('both', '2026-01-05Z'), ('gone', '2026-01-02Z'), ('fresh', '2026-01-01Z')`)
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	for since, want := range map[int]string{
		1: "", 2: "", 3: "gone2 ", 4: "gone2 living3 ", 5: "gone2 living3 ", 6: "gone2 living3 both5 ", 9: "gone2 living3 both5 ", 10: "gone2 living3 both5 fresh9 ",
	} {
		quiet, err := store.Quiet(bounded(t), conn, day(since))
		must(t, err)
		got := ""
		for _, r := range quiet {
			got += fmt.Sprint(r.Name, r.LastSuccess.Day(), " ")
		}
		if got != want {
			t.Errorf("since day %d: %q, want %q", since, got, want)
		}
	}
}

func TestHealthCountsUpToItsBound(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	if h, err := store.Health(bounded(t), conn, 5); err != nil || h.Owed != (domainevents.Count{}) || !h.OldestOwed.IsZero() || len(h.Unknown) != 0 {
		t.Errorf("of nothing: %+v, %v", h, err)
	}
	db.Exec(t, `
insert into domain_events (type, payload, recorded_at, retention_policy)
select 'x', '{}', '2026-01-01Z'::timestamptz + n * interval '1 day', (array['SUCCEEDED', 'SETTLED', 'LATER', 'never', null])[1 + n % 5] from generate_series(0, 19) n;
insert into domain_event_deliveries (event_id, receiver) select id, 'owed' from domain_events where id > 3;
insert into domain_event_deliveries (event_id, receiver, status, claimed_by, claimed_at, claimed_until)
select id, 'claimed', 'claimed', 'w', now(), now() + (id - 6.5) * interval '1 hour' from domain_events where id between 3 and 10;
insert into domain_event_deliveries (event_id, receiver, status, finished_at)
select id, 'ended', (array['dead', 'orphaned', 'succeeded', 'cancelled'])[1 + id % 4], now() from domain_events`)
	// 17 pending and 8 claimed, 4 of them lapsed; 10 dead letters, of which 2 are of the 4 under SUCCEEDED (1, 6, 11, 16).
	h, err := store.Health(bounded(t), conn, 100)
	must(t, err)
	parked := int(db.Int(t, `select count(*) from domain_events where parked`))
	if h.Owed != (domainevents.Count{N: 25}) || h.Dead != (domainevents.Count{N: 10}) || h.Lapsed != (domainevents.Count{N: 4}) || h.Parked != (domainevents.Count{N: parked}) || parked != 2 {
		t.Errorf("health %+v, %d parked", h, parked)
	}
	if !h.OldestOwed.Equal(time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)) || h.OldestOwed.Location() != time.UTC {
		t.Errorf("the oldest owed is of %s", h.OldestOwed)
	}
	if len(h.Unknown) != 2 || h.Unknown["LATER"] != 4 || h.Unknown["never"] != 4 || h.UnknownAtLeast {
		t.Errorf("unknown %v, at least %t", h.Unknown, h.UnknownAtLeast)
	}
	h, err = store.Health(bounded(t), conn, 1)
	must(t, err)
	one := domainevents.Count{N: 1, AtLeast: true}
	if h.Owed != one || h.Dead != one || h.Lapsed != one || h.Parked != one || !h.UnknownAtLeast {
		t.Errorf("health up to 1: %+v", h)
	}
	if h, err = store.Health(bounded(t), conn, 25); err != nil || h.Owed.AtLeast {
		t.Errorf("health up to what there is: %+v, %v", h, err)
	}
}
