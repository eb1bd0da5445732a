package retention_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/inboxoutbox/retention"
)

// stepped is a database on which something happens before each statement that has the text in it.
type stepped struct {
	retention.DB
	text string
	step func()
}

func (s stepped) BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error) {
	tx, err := s.DB.BeginTx(ctx, o)
	return steppedTx{tx, s}, err
}

type steppedTx struct {
	pgx.Tx
	stepped
}

func (s steppedTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if strings.Contains(sql, s.text) {
		s.step()
	}
	return s.Tx.QueryRow(ctx, sql, args...)
}

func (s steppedTx) Begin(ctx context.Context) (pgx.Tx, error) { return s.Tx.Begin(ctx) }

// What was in the way is gone when it is looked at: the settings are recorded after all. Where
// that goes on, the call gives up.
func TestAPolicyThatCameAndWentIsRecordedAfterAll(t *testing.T) {
	for name, c := range map[string]struct {
		again bool
		want  error
	}{"once": {}, "again and again": {true, inboxoutbox.ErrConflict}} {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			agree(t, db.Conn(t), "", hourly, retention.Options{}, retention.Recorded)
			other := db.Conn(t)
			inTheWay := stepped{db.Conn(t), "INSERT", func() {
				if c.again {
					_, err := other.Exec(bounded(t), `insert into inbox_outbox.settings (fingerprint, settings, recorded_by) values (repeat('a', 64), '{}', 'x') on conflict do nothing`)
					must(t, err)
				}
			}}
			gone := stepped{inTheWay, "FOR UPDATE", func() {
				_, err := other.Exec(bounded(t), `delete from inbox_outbox.settings`)
				must(t, err)
			}}
			a, err := retention.Agree(bounded(t), gone, "", weekly, retention.Options{})
			if !errors.Is(err, c.want) || c.want == nil && a.Action != retention.Recorded {
				t.Errorf("%s, %v", a.Action, err)
			}
		})
	}
}

// The second one comes when the first has compared and not yet replaced: it waits, and compares with
// what the first one wrote.
func TestTheSecondToReplaceWaitsForTheFirst(t *testing.T) {
	db := installed.New(t)
	agree(t, db.Conn(t), "", hourly, retention.Options{}, retention.Recorded)
	conn := db.Conn(t)
	var second <-chan error
	first := stepped{db.Conn(t), "UPDATE \"inbox_outbox\"", func() {
		second = db.Beside(t, conn, func() error {
			_, err := retention.Agree(bounded(t), conn, "", weekly, retention.Options{Replace: true})
			return err
		})
	}}
	agree(t, first, "", yearly, retention.Options{Replace: true, By: "the first"}, retention.Replaced)
	var needs *retention.NeedsYesError // longer than what was, shorter than what is
	if err := <-second; !errors.As(err, &needs) || needs.Recorded.By != "the first" {
		t.Errorf("the second: %v", err)
	}
	recorded(t, conn, "", yearly)
}
