package postgres_test

import (
	"testing"

	"github.com/prunectl/prunectl/domainevents"
)

// Two who delete at once remember receivers in one order, and the newest success of both is kept.
func TestTwoWhoDeleteAtOnceRememberTheNewest(t *testing.T) {
	for _, newest := range []int{1, 2} {
		db := installed.New(t)
		conn := db.Conn(t)
		record(t, conn, domainevents.Draft{}, to("a", "b", "c")...)
		record(t, conn, domainevents.Draft{}, to("c", "b", "a")...)
		db.Exec(t, `update domain_event_deliveries set status = 'succeeded', finished_at = case event_id when $1 then '2026-01-02Z'::timestamptz else '2026-01-01Z' end`, newest)
		first, _ := begin(t, db)
		exec(t, first, 3, `delete from domain_event_deliveries where event_id = 1`)
		second := db.Conn(t)
		waiting := db.Beside(t, second, func() error {
			_, err := second.Exec(bounded(t), `delete from domain_event_deliveries where event_id = 2`)
			return err
		})
		must(t, first.Commit(t.Context()))
		must(t, <-waiting)
		if got := db.Text(t, `select string_agg(receiver || to_char(last_success at time zone 'UTC', 'DD'), ' ' order by receiver) from domain_event_receivers`); got != "a02 b02 c02" {
			t.Errorf("event %d is the newest: remembered %q", newest, got)
		}
	}
}

// The deliveries of the two have their receivers in opposite orders. A third session holds the one in the middle until both
// are on their way: each would have what the other needs next, were they not remembered in the order of their keys.
func TestDeletesInDifferentOrdersDoNotDeadlock(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	record(t, conn, domainevents.Draft{}, to("a", "m", "z")...)
	record(t, conn, domainevents.Draft{}, to("z", "m", "a")...)
	db.Exec(t, `
update domain_event_deliveries set status = 'succeeded', finished_at = now() + event_id * interval '1 hour';
insert into domain_event_receivers select r, '2026-01-01Z' from unnest(array['a', 'm', 'z']) r`)
	middle, _ := begin(t, db)
	exec(t, middle, 1, `select from domain_event_receivers where receiver = 'm' for update`)
	var ends []<-chan error
	for id := 1; id <= 2; id++ {
		c := db.Conn(t)
		ends = append(ends, db.Beside(t, c, func() error {
			_, err := c.Exec(bounded(t), `delete from domain_event_deliveries where event_id = $1`, id)
			return err
		}))
	}
	must(t, middle.Rollback(t.Context()))
	for _, end := range ends {
		must(t, <-end)
	}
	if n := db.Int(t, `select count(*) from domain_event_receivers where last_success > now() + interval '90 minutes'`); n != 3 {
		t.Errorf("%d receivers have their newest success", n)
	}
}
