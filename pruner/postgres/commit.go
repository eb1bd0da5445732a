package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// canceling has the server cancel the batch when ctx ends, and lets the batch read on: only the server's answer says
// whether it was rolled back or had been committed before. A request that comes between two statements is passed over, so
// it is repeated. Without an answer within cancelPatience the connection is given up. stop ends all that, and no request
// is on its way when it returns, so that none meets the session's next statement.
func canceling(ctx context.Context, conn *pgx.Conn, giveUp func()) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(done)
		defer time.AfterFunc(cancelPatience, giveUp).Stop()
		for {
			within, cancel := context.WithTimeout(context.Background(), cancelPatience)
			_ = conn.PgConn().CancelRequest(within)
			cancel()
			select {
			case <-over:
				return
			case <-time.After(cancelPause):
			}
		}
	})
	return func() {
		close(over)
		if !release() {
			<-done
		}
	}
}

// settled reports whether a failure of COMMIT leaves no doubt that the batch was rolled back: the server refused it and
// the connection lives on.
func settled(err error) bool {
	var pg *pgconn.PgError
	// not Severity, which a server writes in its own language
	return errors.As(err, &pg) && pg.SeverityUnlocalized != "FATAL" && pg.SeverityUnlocalized != "PANIC"
}

// outcome is what the server says of a transaction.
type outcome int

const (
	unknown outcome = iota
	committed
	aborted
)

// transactionSQL is by what the outcome of the transaction can be asked for: its number, since when the server runs, and
// when the transaction began. Null, where it has written nothing.
const transactionSQL = "pg_current_xact_id_if_assigned()::text || ' '::text || extract(epoch FROM pg_postmaster_start_time()) || ' '::text || extract(epoch FROM now())"

// number is that of the transaction alone.
func number(xid string) string {
	n, _, _ := strings.Cut(xid, " ")
	return n
}

// statusSQL asks for the outcome, and whether the server has lived on since. In a crash or a failover a transaction of which
// nothing is on disk is lost, number and all: the next one gets its number, and it is of that one that the server then says
// "committed". A new start of the server, or another server, is told by when it started. Where the server recovered from the
// death of one of its processes, it is told by its statistics, which do not outlive that.
const statusSQL = `SELECT pg_xact_status(split_part($1::text, ' ', 1)::xid8)
     , extract(epoch FROM pg_postmaster_start_time()) = split_part($1::text, ' ', 2)::numeric
       AND NOT EXISTS (SELECT FROM pg_stat_bgwriter b WHERE extract(epoch FROM b.stats_reset) >= split_part($1::text, ' ', 3)::numeric)`

// ask finds out on a new connection what became of a transaction whose COMMIT was not answered. While the server says
// that it is in progress it is asked again, up to askPatience. A server that cannot say, too long ago or not the one that
// ran it, leaves it unknown.
func ask(conn *pgx.Conn, xid string) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		switch status(ctx, conn, xid) {
		case "committed":
			return committed
		case "aborted":
			return aborted
		case "refused":
			return unknown
		}
		select {
		case <-ctx.Done():
			return unknown
		case <-time.After(wait):
		}
	}
}

// status is pg_xact_status, "" where it could not be asked this time, "refused" where it cannot be answered. "aborted" is
// true of a lost transaction too.
func status(ctx context.Context, conn *pgx.Conn, xid string) string {
	c, err := another(ctx, conn)
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close(ctx) }()
	var s *string
	var same bool
	err = c.QueryRow(ctx, statusSQL, unnamed(c), xid).Scan(&s, &same)
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && !strings.HasPrefix(pg.Code, "57"): // 57: the server is being shut down, or its backend was
		return "refused"
	case err != nil:
		return ""
	case s == nil, *s == "committed" && !same:
		return "refused"
	}
	return *s
}
