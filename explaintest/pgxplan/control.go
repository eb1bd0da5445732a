package pgxplan

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/explaintest"
)

// Control proves rules: they hold for the statement's plan, and with the index dropped each of them fails. The index, or the
// constraint that it belongs to with the foreign keys on it, is dropped in a transaction that is rolled back; its table is
// locked until then. A rule that holds without the index too is an error: it says nothing about it.
func Control(ctx context.Context, db DB, index string, st Statement, rules ...explaintest.Rule) error {
	p, err := Explain(ctx, db, st)
	if err != nil {
		return err
	}
	if err := explaintest.Check(p, rules...); err != nil {
		return fmt.Errorf("with the index %s: %w", index, err)
	}
	err = rolledBack(ctx, db, func(tx pgx.Tx) error {
		if err := drop(ctx, tx.Conn(), index); err != nil {
			return err
		}
		p, err = Explain(ctx, tx, st)
		return err
	})
	if err != nil {
		return fmt.Errorf("without the index %s: %w", index, err)
	}
	var still []string
	for _, r := range rules {
		if explaintest.Check(p, r) == nil {
			still = append(still, r.String())
		}
	}
	if len(still) > 0 {
		return fmt.Errorf("without the index %s these rules hold too, so they prove nothing about it: %s\n\n%s", index, strings.Join(still, "; "), p)
	}
	return nil
}

// drop removes an index, or the constraint that it belongs to.
func drop(ctx context.Context, conn *pgx.Conn, index string) error {
	name := quoted(index)
	rows, err := run(ctx, conn, `SELECT format('ALTER TABLE %s DROP CONSTRAINT %I CASCADE', conrelid::regclass, conname)
  FROM pg_catalog.pg_constraint WHERE conindid = $1::text::regclass AND contype IN ('p', 'u', 'x')`, name)
	if err != nil {
		return err
	}
	sql := "DROP INDEX " + name
	if len(rows) > 0 {
		sql = string(rows[0][0])
	}
	_, err = run(ctx, conn, sql)
	return err
}

// Assert fails the test where a statement's plan, custom or generic, breaks a rule. What Generic says is not asked.
func Assert(ctx context.Context, t explaintest.TB, db DB, st Statement, rules ...explaintest.Rule) {
	t.Helper()
	both(t, st, func(st Statement) error {
		p, err := Explain(ctx, db, st)
		if err != nil {
			return err
		}
		return explaintest.Check(p, rules...)
	})
}

// AssertControl fails the test where [Control] does, for the custom or for the generic plan.
func AssertControl(ctx context.Context, t explaintest.TB, db DB, index string, st Statement, rules ...explaintest.Rule) {
	t.Helper()
	both(t, st, func(st Statement) error { return Control(ctx, db, index, st, rules...) })
}

// both calls f for the custom and for the generic plan.
func both(t explaintest.TB, st Statement, f func(Statement) error) {
	t.Helper()
	for _, st.Generic = range []bool{false, true} {
		if err := f(st); err != nil {
			t.Error(map[bool]string{false: "custom plan: ", true: "generic plan: "}[st.Generic] + err.Error())
		}
	}
}
