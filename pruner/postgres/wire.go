package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// call is one statement on its way: every value as text, cast in the statement, so that all protocols send the same.
type call struct {
	sql  string
	args []string
}

// answer is the first row of a call's result; a null is "" with null true. A statement that returns no rows answers with
// how many it changed.
type answer []field

type field struct {
	text string
	null bool
}

// commitError is a failure after COMMIT was sent: its outcome is open unless the server itself refused it.
type commitError struct{ err error }

func (e *commitError) Error() string { return "commit: " + e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

// callError is a failure of the n-th call.
type callError struct {
	n   int
	err error
}

func (e *callError) Error() string { return e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

// transaction sends the calls between BEGIN and COMMIT and returns their answers: those before the failure beside an
// error. Beside a *commitError they may be fewer too: the server has all of a pipeline, COMMIT too, when the line is lost.
// Beside any other error nothing was committed.
//
// The isolation level is explicit, since under REPEATABLE READ as a session's default a lock on a reopened owner would
// fail instead of being asked again. The access mode is not: a database that is read-only by default stays so.
// Constraints are made immediate, so that a deferred one speaks at the statement that violates it and not at COMMIT.
func transaction(ctx context.Context, conn *pgx.Conn, calls []call) ([]answer, error) {
	all := append([]call{{sql: "BEGIN ISOLATION LEVEL READ COMMITTED"}, {sql: "SET CONSTRAINTS ALL IMMEDIATE"}}, calls...)
	send := pipeline
	if conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		send = simple
	}
	answers, err := send(ctx, conn, all)
	return answers[min(2, len(answers)):], err
}

// pipeline sends everything in one round trip, with unnamed statements. The flush before COMMIT brings the answers even
// where COMMIT hangs.
func pipeline(ctx context.Context, conn *pgx.Conn, calls []call) ([]answer, error) {
	p := conn.PgConn().StartPipeline(ctx)
	for _, c := range calls {
		p.SendQueryParams(c.sql, values(c.args), nil, nil, nil)
	}
	p.SendFlushRequest()
	p.SendQueryParams("COMMIT", nil, nil, nil, nil)
	if err := p.Sync(); err != nil {
		_ = p.Close()
		return nil, err
	}
	var answers []answer
	for n := range calls {
		a, _, err := result(p)
		if err != nil {
			_ = p.Close()
			var pg *pgconn.PgError
			if !errors.As(err, &pg) {
				return answers, &commitError{err}
			}
			return answers, &callError{n - 2, err}
		}
		answers = append(answers, a)
	}
	_, tag, err := result(p)
	if err == nil && tag != "COMMIT" {
		err = fmt.Errorf("the server answered %s", tag)
	}
	if err != nil {
		_ = p.Close()
		return answers, &commitError{err}
	}
	_ = p.Close() // a line that is lost now is the next batch's matter: this one is committed
	return answers, nil
}

func values(args []string) [][]byte {
	vs := make([][]byte, len(args))
	for i, a := range args {
		vs[i] = []byte(a)
	}
	return vs
}

func result(p *pgconn.Pipeline) (answer, string, error) {
	got, err := p.GetResults()
	if err != nil {
		return nil, "", err
	}
	rr, ok := got.(*pgconn.ResultReader)
	if !ok {
		return nil, "", errors.New("the connection ended in mid-batch")
	}
	res := rr.Read()
	if res.Err != nil {
		return nil, "", res.Err
	}
	return first(res), res.CommandTag.String(), nil
}

// changed is the answer of a statement that returns no rows.
func changed(tag pgconn.CommandTag) answer {
	return answer{{text: strconv.FormatInt(tag.RowsAffected(), 10)}}
}

func first(res *pgconn.Result) answer {
	rows := res.Rows
	switch {
	case len(res.FieldDescriptions) == 0:
		return changed(res.CommandTag)
	case len(rows) == 0:
		return nil
	}
	a := make(answer, len(rows[0]))
	for i, v := range rows[0] {
		a[i] = field{string(v), v == nil}
	}
	return a
}

// simple is the simple protocol, where the connection asks for it: one round trip for the batch and a second for COMMIT,
// so that the answers are in hand before it.
func simple(ctx context.Context, conn *pgx.Conn, calls []call) ([]answer, error) {
	b := &pgx.Batch{}
	for _, c := range calls {
		args := make([]any, len(c.args))
		for i, a := range c.args {
			args[i] = a
		}
		b.Queue(c.sql, args...)
	}
	br := conn.SendBatch(ctx, b)
	var answers []answer
	for n := range calls {
		a, err := next(br)
		if err != nil {
			_ = br.Close()
			return answers, &callError{n - 2, err}
		}
		answers = append(answers, a)
	}
	if err := br.Close(); err != nil {
		return nil, err
	}
	tag, err := conn.Exec(ctx, "COMMIT", pgx.QueryExecModeSimpleProtocol)
	if err == nil && tag.String() != "COMMIT" {
		err = fmt.Errorf("the server answered %s", tag)
	}
	if err != nil {
		return answers, &commitError{err}
	}
	return answers, nil
}

func next(br pgx.BatchResults) (answer, error) {
	rows, err := br.Query()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var a answer
	for rows.Next() {
		if a != nil {
			continue
		}
		for _, v := range rows.RawValues() {
			a = append(a, field{string(v), v == nil})
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(rows.FieldDescriptions()) == 0 {
		return changed(rows.CommandTag()), nil
	}
	return a, nil
}
