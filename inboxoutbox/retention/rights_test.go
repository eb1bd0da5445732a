package retention_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/inboxoutbox/retention"
	"github.com/prunectl/prunectl/internal/pgtest"
)

// The least rights of who cleans up by a policy that somebody else has recorded. With UPDATE on one
// column of each table besides, rows that others hold are stepped over at once, and not searched for.
const grants = `
grant usage on schema inbox_outbox to inboxretention_cleaner;
grant select on all tables in schema inbox_outbox to inboxretention_cleaner;
grant delete on inbox_outbox.inbox, inbox_outbox.outbox, inbox_outbox.leases to inboxretention_cleaner`

func TestACleanupNeedsNoMoreThanTheseRights(t *testing.T) {
	pgtest.Role(t, "inboxretention_cleaner", "login")
	db := installed.New(t)
	db.Exec(t, grants)
	db.Exec(t, in("inbox_outbox", history))
	agree(t, db.Conn(t), "", weekly, retention.Options{}, retention.Recorded)
	tx := begin(t, db)
	_, err := tx.Exec(bounded(t), `select from inbox_outbox.inbox where event_id = 'old' for update`)
	must(t, err)
	pool, err := pgxpool.New(t.Context(), db.DSNAs("inboxretention_cleaner"))
	must(t, err)
	defer pool.Close()
	r := cleanUp(t, pool, weekly, retention.CleanupOptions{})
	if r.Ledgers[0].Report.Removed != 1 || r.Ledgers[0].Report.Locked != 1 || !r.Ledgers[1].Report.Drained() || !r.Ledgers[2].Report.Drained() {
		t.Errorf("%s", r)
	}
}
