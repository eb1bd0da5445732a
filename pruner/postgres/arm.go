package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// maxPassed is how many limits of rows that stay may be passed over by address in a group that no index orders.
const maxPassed = 10

// Arm carries out one arm of a sweep. It implements [pruner.Pruner] and [pruner.Surveyor], and may be used by one
// goroutine at a time.
type Arm struct {
	target
	db *DB

	statements map[shape]statement
	edit       func(shape, string) string         // for tests that take a clause out
	editStep   func(shape, string, string) string // of a later statement of the parent form, by its name
	looks      looks                              // of the parent form
}

var (
	_ pruner.Pruner   = (*Arm)(nil)
	_ pruner.Surveyor = (*Arm)(nil)
)

// Spec is the arm as the policy describes it.
func (a *Arm) Spec() policy.Arm { return a.arm }

// Index is the name of the index that serves the arm.
func (a *Arm) Index() string { return a.index.name }

// Prune is one batch; see [pruner.Pruner]. Where more rows than the limit share one age, it needs a second round trip.
func (a *Arm) Prune(ctx context.Context, b pruner.Batch) (pruner.Result, error) {
	if b.Limit < 1 || b.Limit > pruner.MaxLimit {
		return pruner.Result{}, fmt.Errorf("limit %d: %w", b.Limit, pruner.ErrLimit)
	}
	if b.Cutoff.IsZero() {
		return pruner.Result{End: true}, nil
	}
	at, err := parsePlace(b.After, a.sweep.Since)
	if err != nil {
		return pruner.Result{}, err
	}
	if at.Age >= b.Cutoff.Time().UnixMicro() {
		return pruner.Result{End: true}, nil
	}
	var res pruner.Result
	err = a.db.with(ctx, func(conn *pgx.Conn) (err error) {
		if a.arm.Parents() {
			res, err = a.batchOfParents(ctx, conn, b, at)
			return err
		}
		if !at.Group {
			var again bool
			res, again, err = a.batch(ctx, conn, b, at)
			if !again || err != nil {
				return err
			}
			at = place{Age: at.Age, Group: true}
		}
		res, err = a.group(ctx, conn, b, at)
		return err
	})
	if err != nil && res.Removed+res.Children == 0 {
		res = pruner.Result{}
	}
	return res, err
}

// batch examines a range of ages. again says that the range is empty because more rows than the limit share its first age.
func (a *Arm) batch(ctx context.Context, conn *pgx.Conn, b pruner.Batch, at place) (_ pruner.Result, again bool, _ error) {
	res, row, err := a.run(ctx, conn, b, shape{mode: b.Mode}, at)
	if err != nil || res.Busy {
		return res, false, err
	}
	if row.edge == nil {
		res.End = true
		return res, false, nil
	}
	res.Next = place{Age: *row.edge}.cursor()
	return res, res.Examined == 0 && *row.edge == at.Age, nil
}

// group examines the next rows of one age. Once it is walked the cursor goes on behind that age, whatever stayed in it.
func (a *Arm) group(ctx context.Context, conn *pgx.Conn, b pruner.Batch, at place) (pruner.Result, error) {
	keyed := len(a.ties.columns) > 0
	if !keyed && strings.Count(at.Passed, "(") > maxPassed*b.Limit {
		return a.unordered(b, at), nil
	}
	res, row, err := a.run(ctx, conn, b, shape{mode: b.Mode, group: true, next: keyed && len(at.Key) > 0}, at)
	if err != nil || res.Busy {
		return res, err
	}
	if res.Examined < b.Limit {
		a.behind(&res, b, at)
		return res, nil
	}
	next := place{Age: at.Age, Group: true}
	if keyed {
		next.Key = row.key
	} else {
		next.Passed = join(at.Passed, row.last)
	}
	res.Next = next.cursor()
	return res, nil
}

// behind puts the cursor behind the age: ages are whole microseconds, so the next one is exclusive of it.
func (a *Arm) behind(res *pruner.Result, b pruner.Batch, at place) {
	res.Next = place{Age: at.Age + 1}.cursor()
	res.End = at.Age+1 >= b.Cutoff.Time().UnixMicro()
}

// unordered gives up a group that no index orders after maxPassed limits of rows that stay: to read on would cost more
// with each batch. What lies behind is left, and is not called drained.
func (a *Arm) unordered(b pruner.Batch, at place) pruner.Result {
	res := pruner.Result{Examined: 1, Stuck: 1}
	res.Blocked = []pruner.Block{{
		Constraint: fmt.Sprintf("rows of one age (%s) that no index orders; end %s with a unique key", timestamptz(at.Age), a.index.name),
		Table:      a.table.name.String(), Rows: 1,
	}}
	a.behind(&res, b, at)
	return res
}

func join(a, b string) string {
	a, b = strings.Trim(a, "{}"), strings.Trim(b, "{}")
	if a == "" || b == "" {
		return "{" + a + b + "}"
	}
	return "{" + a + "," + b + "}"
}

// batchRow is the answer of the batch's statement.
type batchRow struct {
	examined, outside, held, locked, orphan, picked, mine, unusable, raised int

	removed int // -1: not counted by the statement
	ok      bool
	edge    *int64
	last    string
	key     []string
}

// run is one batch of the ordinary form.
func (a *Arm) run(ctx context.Context, conn *pgx.Conn, b pruner.Batch, s shape, at place) (res pruner.Result, row batchRow, err error) {
	args := a.values(b, at)
	calls := []call{a.settingsSQL().with(args), a.statement(s).with(args), a.afterSQL(s).with(args)}
	res, err = a.send(ctx, conn, b, calls, func(answers []answer) (_ pruner.Result, xid string, bad error) {
		res, row, xid, bad = a.count(answers, s)
		return res, xid, bad
	})
	return res, row, err
}

// values are those of the parameters that every form of a batch has.
func (a *Arm) values(b pruner.Batch, at place) map[string]string {
	timeout := a.timeout(b)
	args := map[string]string{
		argCutoff:           timestamptz(b.Cutoff.Time().UnixMicro()),
		argAfter:            timestamptz(at.Age),
		argLimit:            strconv.Itoa(b.Limit),
		argPassed:           join(at.Passed, ""),
		argStatementTimeout: millis(timeout),
		argLockTimeout:      millis(min(a.sweep.Timeouts.Lock, timeout)),
	}
	for i, k := range at.Key {
		args[argTie+strconv.Itoa(i)] = k
	}
	return args
}

// timeout is that of the batch's statements, each.
func (a *Arm) timeout(b pruner.Batch) time.Duration {
	if b.Timeout > 0 && b.Timeout < a.sweep.Timeouts.Statement {
		return b.Timeout
	}
	return a.sweep.Timeouts.Statement
}

// sending is what a transaction is sent with, whoever sends it.
type sending struct {
	on      policy.Name   // the table it is about, for messages
	timeout time.Duration // of each of its statements
	canSkip bool          // its rows can be locked, so that locked ones can be skipped
	locks   []lockProbe
}

func (a *Arm) send(ctx context.Context, conn *pgx.Conn, b pruner.Batch, calls []call, count func([]answer) (pruner.Result, string, error)) (pruner.Result, error) {
	s := sending{on: a.table.name, timeout: a.timeout(b), canSkip: a.table.canUpdate && !a.arm.Parents(), locks: a.lockProbes()}
	return s.send(ctx, conn, calls, count)
}

// send sends one transaction and counts what it did.
func (s sending) send(ctx context.Context, conn *pgx.Conn, calls []call, count func([]answer) (pruner.Result, string, error)) (pruner.Result, error) {
	if ctx.Err() != nil {
		return pruner.Result{}, fmt.Errorf("the batch was not begun: %w", context.Cause(ctx))
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(len(calls))*s.timeout+commitPatience)
	defer cancel()

	start := time.Now()
	stop := canceling(ctx, conn, cancel)
	answers, err := transaction(within, conn, calls)
	stop()
	ran := time.Since(start)
	var lost *commitError
	if err != nil && (!errors.As(err, &lost) || settled(err)) {
		if !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
			rollback(conn)
		}
		return pruner.Result{}, s.classify(ctx, conn, err, ran, limitsOf(answers))
	}
	if err != nil && len(answers) < len(calls) {
		return pruner.Result{}, &pruner.UnknownCommitError{Err: lost.err}
	}
	res, xid, bad := count(answers)
	if bad != nil {
		return pruner.Result{}, bad
	}
	if err == nil || xid == "" && res.Removed+res.Children == 0 {
		return res, err
	}
	switch ask(conn, xid) {
	case committed:
		return res, nil
	case aborted:
		return pruner.Result{}, fmt.Errorf("batch on %s: the connection was lost at COMMIT, and the server rolled it back: %w", s.on, lost.err)
	}
	return pruner.Result{}, &pruner.UnknownCommitError{XID: number(xid), Pending: res, Err: lost.err}
}

func millis(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }

// with binds the values to the statement's parameters.
func (s statement) with(values map[string]string) call {
	c := call{sql: s.sql}
	for _, name := range s.args {
		c.args = append(c.args, values[name])
	}
	return c
}

// statement is rendered once per shape.
func (a *Arm) statement(s shape) statement {
	if st, ok := a.statements[s]; ok {
		return st
	}
	st := a.render(s)
	if a.edit != nil {
		st.sql = a.edit(s, st.sql)
	}
	if a.statements == nil {
		a.statements = map[shape]statement{}
	}
	a.statements[s] = st
	return st
}
