package torture

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// wrongSQL is what the triggers saw.
const wrongSQL = `
SELECT l.family, format('%s %s of %s, removed by %s at %s in transaction %s: %s', l.part, l.id, coalesce(l.key::text, '-'), l.who, l.at, l.xid, l.wrong)
  FROM ledger l WHERE l.wrong IS NOT NULL ORDER BY l.at LIMIT 20`

// changesSQL puts the history in the order of the commits.
const changesSQL = `
CREATE TEMPORARY TABLE changes AS
SELECT h.family, h.key, pg_xact_commit_timestamp(h.xid) AS at, h.n, h.protects FROM history h;
CREATE INDEX ON changes (family, key, at, n) INCLUDE (protects);
ANALYZE changes`

// unknownSQL counts the deletions, and the changes, of which the server has forgotten when they were committed.
const unknownSQL = `
SELECT (SELECT count(*) FROM ledger l WHERE pg_xact_commit_timestamp(l.xid) IS NULL) + (SELECT count(*) FROM changes c WHERE c.at IS NULL)`

// pastSQL finds rows that were protected when their deletion was committed: the last change before it says so. A change
// of the same microsecond came after it: who changes waits for the sweep's lock, and then has still to commit.
const pastSQL = `
SELECT d.family, format('rows of %s were removed by %s in transaction %s, which was committed at %s, when it was protected since %s', d.key, d.who, d.xid, d.at, l.at)
  FROM (SELECT DISTINCT l.family, l.key, l.who, l.xid, pg_xact_commit_timestamp(l.xid) AS at
          FROM ledger l WHERE l.strict AND l.key IS NOT NULL AND l.who LIKE 'sweep %') d
 CROSS JOIN LATERAL (SELECT c.protects, c.at FROM changes c
                      WHERE c.family = d.family AND c.key = d.key AND c.at < d.at
                      ORDER BY c.at DESC, c.n DESC LIMIT 1) l
 WHERE l.protects
 LIMIT 20`

const twiceSQL = `
SELECT l.family, format('%s %s was removed %s times', l.part, l.id, count(*)) FROM ledger l GROUP BY l.family, l.part, l.id HAVING count(*) > 1 LIMIT 20`

const sumsSQL = `
SELECT l.who, count(*) FILTER (WHERE l.part = l.family), count(*) FILTER (WHERE l.part <> l.family)
  FROM ledger l WHERE l.who LIKE 'sweep %' GROUP BY l.who`

const leftBehindSQL = `
SELECT 'events', format('delivery %s is left without its event %s', d.id, d.event_id) FROM deliveries d WHERE NOT EXISTS (SELECT FROM events e WHERE e.id = d.event_id)
UNION ALL
SELECT 'events', format('attempt %s is left without its delivery %s', a.id, a.delivery_id) FROM attempts a WHERE NOT EXISTS (SELECT FROM deliveries d WHERE d.id = a.delivery_id)
 LIMIT 20`

// judge asks the database what happened, now that nobody works in it any more.
func (w *world) judge() (*Report, error) {
	ctx, cancel := context.WithTimeout(context.Background(), judgePatience)
	defer cancel()
	r := w.report()
	// What went wrong while it went on: failed statements, drains that ended as none may.
	r.check("users and sweepers met no error, deadlock or serialization failure", w.violations)
	for _, c := range []struct{ what, before, sql string }{
		{"the ledger has no row that should have stayed", "", wrongSQL},
		{"every commit is known by its time", changesSQL, ""},
		{"no row was protected when its deletion was committed", "", pastSQL},
		{"no row was removed twice", "", twiceSQL},
		{"no child is left without its parent", "", leftBehindSQL},
	} {
		if c.before != "" {
			if err := w.desk.PgConn().Exec(ctx, c.before).Close(); err != nil {
				return nil, fmt.Errorf("%s: %w", c.what, err)
			}
		}
		found, err := w.ask(ctx, c.sql)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.what, err)
		}
		r.check(c.what, found)
	}
	for _, check := range []func(context.Context, *Report) error{w.sums, w.balance, w.left, w.deadlocks} {
		if err := check(ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// ask collects what a query found.
func (w *world) ask(ctx context.Context, sql string) ([]violation, error) {
	if sql == "" {
		n, err := w.number(ctx, unknownSQL)
		if err != nil || n == 0 {
			return nil, err
		}
		return []violation{{"", fmt.Sprintf("of %d lines the server does not know any more when they were committed", n)}}, nil
	}
	rows, err := w.desk.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (v violation, err error) {
		err = row.Scan(&v.family, &v.what)
		return v, err
	})
}

func (w *world) number(ctx context.Context, sql string, args ...any) (n int64, err error) {
	err = w.desk.QueryRow(ctx, sql, args...).Scan(&n)
	return n, err
}

// sums compares what each sweeper said with the lines in its name.
func (w *world) sums(ctx context.Context, r *Report) error {
	type sum struct{ removed, children int }
	rows, err := w.desk.Query(ctx, sumsSQL)
	if err != nil {
		return err
	}
	ledger := map[string]sum{}
	if _, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (who string, err error) {
		var s sum
		err = row.Scan(&who, &s.removed, &s.children)
		ledger[who] = s
		return who, err
	}); err != nil {
		return err
	}
	var found []violation
	for _, f := range w.families {
		if !f.ledger {
			continue
		}
		for _, o := range f.sweepers {
			if said := (sum{o.removed, o.children}); said != ledger[o.name()] {
				found = append(found, violation{f.name, fmt.Sprintf("%s said that it removed %d rows and %d children; the ledger has %d and %d", o.name(), said.removed, said.children, ledger[o.name()].removed, ledger[o.name()].children)})
			}
		}
	}
	r.check("what each sweeper said is what the ledger has in its name", found)
	return nil
}

// balance compares what is left with what was put in and taken out, as everybody said.
func (w *world) balance(ctx context.Context, r *Report) error {
	var found []violation
	for i, f := range w.families {
		rows, err := w.number(ctx, "SELECT count(*) FROM "+f.name)
		if err != nil {
			return err
		}
		kids := int64(0)
		for _, c := range f.children {
			n, err := w.number(ctx, "SELECT count(*) FROM "+c)
			if err != nil {
				return err
			}
			kids += n
		}
		if rows != f.rows.Load() || kids != f.kids.Load() {
			found = append(found, violation{f.name, fmt.Sprintf("%d rows and %d children are left; by what was said it must be %d and %d", rows, kids, f.rows.Load(), f.kids.Load())})
		}
		r.Families[i].Left, r.Families[i].LeftChildren = rows, kids
	}
	r.check("what was put in, less what was said to be taken out, is what is left", found)
	return nil
}

// left asks, by conditions that are not the engine's, whether anything due is left, and whether the last report counted
// rightly what it kept.
func (w *world) left(ctx context.Context, r *Report) error {
	var due, wrong []violation
	for _, f := range w.families {
		n, err := w.number(ctx, "SELECT count(*) "+f.due, f.last.now)
		if err != nil {
			return err
		}
		if n > 0 {
			due = append(due, violation{f.name, fmt.Sprintf("%d rows are due and left after the last drain, by %s", n, f.last.by)})
		}
		l := f.last.report
		said := map[string]int{"held": l.Held, "orphan": l.Orphan, "outside": l.Outside}
		for _, k := range f.kept {
			n, err := w.number(ctx, "SELECT count(*) "+k.from, f.last.now)
			if err != nil {
				return err
			}
			if n != int64(said[k.class]) {
				wrong = append(wrong, violation{f.name, fmt.Sprintf("%d rows are %s; the last drain, by %s, counted %d", n, k.class, f.last.by, said[k.class])})
			}
		}
	}
	r.check("nothing due is left after the last drains", due)
	r.check("the last drains counted what they kept", wrong)
	return nil
}

// deadlocks asks the server, which also knows of those that a sweep got over without a word.
func (w *world) deadlocks(ctx context.Context, r *Report) error {
	n, err := w.number(ctx, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
	if err != nil {
		return err
	}
	var found []violation
	if n > 0 {
		found = []violation{{"", fmt.Sprintf("the server resolved %d deadlocks", n)}}
	}
	r.check("the server met no deadlock", found)
	return nil
}
