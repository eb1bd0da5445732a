package retention

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/inboxoutbox"
)

// countBound bounds what is counted of a ledger.
const countBound = 100_000

// tries is how often a recorded policy that is not there any more is recorded anew.
const tries = 3

// DB is what the policy is agreed on with: a *pgxpool.Pool or a *pgx.Conn outside a
// transaction.
type DB interface {
	BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Policy is the policy that a database has recorded.
type Policy struct {
	Fingerprint string
	Fields      inboxoutbox.Fields
	At          time.Time // when it was recorded, by the database's clock, in UTC
	By          string    // who recorded it
}

// Options are those of Agree. The zero Options change nothing that is recorded.
type Options struct {
	Replace bool   // the settings take the place of recorded ones that differ
	Yes     bool   // also where a window gets shorter, and rows become due by it
	By      string // who records it; "": the role of the session
}

// Action is what Agree did.
type Action string

const (
	// Same: the settings are the recorded ones. Nothing was done.
	Same Action = "same"
	// Recorded: there were none, and the settings were recorded.
	Recorded Action = "recorded"
	// Replaced: the settings took the place of others.
	Replaced Action = "replaced"
)

// Agreement is the policy in force, and what was done for it to be.
type Agreement struct {
	Policy Policy
	Action Action
	// Before is the policy that was replaced, Fields in what, and Due what became due by it.
	// They are there where it was.
	Before *Policy
	Fields []inboxoutbox.Difference
	Due    []Due
}

// Agree makes sure that the settings are the one policy of the inbox and outbox in a schema,
// [inboxoutbox.DefaultSchema] when empty. The first settings are recorded, and the same ones
// agree. Others are refused with a [*DifferenceError], or take the place of the recorded ones
// where o says so; where a window gets shorter by that, o has to say yes to it, or the answer
// is a [*NeedsYesError] that counts the rows that become due. Of two that come at once the
// second one sees what the first one did.
//
// The error can also be [inboxoutbox.ErrSettings], before the database is asked, or
// [ErrNotInstalled]. To agree on what is recorded takes no more than the right to read it.
func Agree(ctx context.Context, db DB, schema string, settings inboxoutbox.Settings, o Options) (Agreement, error) {
	if err := settings.Check(); err != nil {
		return Agreement{}, err
	}
	schema = cmp.Or(schema, inboxoutbox.DefaultSchema)
	a := agreeing{text: render(schema), schema: schema, settings: settings.WithDefaults(), o: o}
	result, err := a.agree(ctx, db)
	if err != nil {
		return Agreement{}, fmt.Errorf("agree on a policy: %w", meaning(schema, err))
	}
	return result, nil
}

// ReadPolicy returns the policy that is recorded in a schema, [inboxoutbox.DefaultSchema] when
// empty; ok is false where there is none yet.
func ReadPolicy(ctx context.Context, db DB, schema string) (p Policy, ok bool, err error) {
	schema = cmp.Or(schema, inboxoutbox.DefaultSchema)
	p, err = scan(db.QueryRow(ctx, render(schema).recorded))
	if errors.Is(err, pgx.ErrNoRows) {
		return Policy{}, false, nil
	}
	if err != nil {
		return Policy{}, false, fmt.Errorf("read the policy: %w", meaning(schema, err))
	}
	return p, true, nil
}

func scan(row pgx.Row) (p Policy, err error) {
	var fields string
	if err := row.Scan(&p.Fingerprint, &fields, &p.At, &p.By); err != nil {
		return Policy{}, err
	}
	p.At = p.At.UTC()
	if err := json.Unmarshal([]byte(fields), &p.Fields); err != nil {
		return Policy{}, fmt.Errorf("the settings recorded %s by %s can not be read, somebody else wrote them: %w", p.At.Format(time.RFC3339), p.By, err)
	}
	return p, nil
}

// agreeing is one call of Agree.
type agreeing struct {
	text     statements
	schema   string
	settings inboxoutbox.Settings
	o        Options
}

func (a agreeing) agree(ctx context.Context, db DB) (Agreement, error) {
	p, err := scan(db.QueryRow(ctx, a.text.recorded))
	if err == nil && p.Fingerprint == a.settings.Fingerprint() {
		return Agreement{Policy: p, Action: Same}, nil
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return Agreement{}, err
	}
	for range tries {
		result, err := a.once(ctx, db)
		if !errors.Is(err, pgx.ErrNoRows) {
			return result, err
		}
	}
	return Agreement{}, fmt.Errorf("what is recorded came and went: %w", inboxoutbox.ErrConflict)
}

// once records or compares in a transaction of its own. pgx.ErrNoRows: what was in the way is
// not there any more.
func (a agreeing) once(ctx context.Context, db DB) (result Agreement, err error) {
	err = pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		text, err := json.Marshal(a.settings.Fields())
		if err != nil {
			return err
		}
		args := []any{a.settings.Fingerprint(), string(text), a.o.By}
		p, err := scan(tx.QueryRow(ctx, a.text.record, args...)) // waits for another one who records
		if err == nil {
			result = Agreement{Policy: p, Action: Recorded}
			return nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		before, err := scan(tx.QueryRow(ctx, a.text.lock))
		if err != nil {
			return err
		}
		if before.Fingerprint == a.settings.Fingerprint() {
			result = Agreement{Policy: before, Action: Same}
			return nil
		}
		fields := before.Fields.Differences(a.settings.Fields())
		if !a.o.Replace {
			return &DifferenceError{Schema: a.schema, Recorded: before, Fields: fields}
		}
		due, err := a.due(ctx, tx, before.Fields.Settings().WithDefaults())
		if err != nil {
			return err
		}
		if len(due) > 0 && !a.o.Yes {
			return &NeedsYesError{Schema: a.schema, Recorded: before, Fields: fields, Due: due}
		}
		p, err = scan(tx.QueryRow(ctx, a.text.replace, args...))
		if err != nil {
			return err
		}
		result = Agreement{Policy: p, Action: Replaced, Before: &before, Fields: fields, Due: due}
		return nil
	})
	return result, err
}

// due counts what becomes due by the windows that get shorter.
func (a agreeing) due(ctx context.Context, tx pgx.Tx, before inboxoutbox.Settings) (all []Due, err error) {
	for _, w := range []struct {
		ledger, text string
		longer, now  time.Duration
	}{
		{inbox, a.text.dueInbox, before.InboxWindow, a.settings.InboxWindow},
		{outbox, a.text.dueOutbox, before.OutboxWindow, a.settings.OutboxWindow},
	} {
		if w.now >= w.longer {
			continue
		}
		var n int
		if err := tx.QueryRow(ctx, w.text, int64(w.longer/time.Second), int64(w.now/time.Second), int64(countBound)+1).Scan(&n); err != nil {
			return nil, fmt.Errorf("count what becomes due in %s: %w", w.ledger, err)
		}
		all = append(all, Due{Ledger: w.ledger, Rows: bounded(n), Longer: w.longer, Now: w.now})
	}
	return all, nil
}

// bounded is what was counted up to one more than countBound.
func bounded(n int) inboxoutbox.Count {
	return inboxoutbox.Count{N: min(n, countBound), AtLeast: n > countBound}
}
