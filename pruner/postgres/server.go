package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Server is where a DB leads.
type Server struct {
	Host           string
	Port           int
	Database, Role string
	Version        string // as the server says it, "15.18 (Debian ...)"
	Major          int
	Now            time.Time // the server's clock, from which cutoffs are computed
	InRecovery     bool      // a standby
	ReadOnly       bool      // transactions are read-only by default
}

// Writable is nil if the server takes deletes, else it says why not.
func (s Server) Writable() error {
	switch {
	case s.InRecovery:
		return errors.New("read-only target: the server is a standby")
	case s.ReadOnly:
		return errors.New("read-only target: transactions are read-only by default (default_transaction_read_only)")
	}
	return nil
}

// Identify asks the server who and where it is, and what time it has.
func Identify(ctx context.Context, db *DB) (Server, error) {
	var s Server
	err := db.with(ctx, func(conn *pgx.Conn) error {
		s.Host, s.Port = host(conn)
		var num int
		err := conn.QueryRow(ctx, `SELECT current_database()::text, current_user::text, current_setting('server_version'), current_setting('server_version_num')::int,
       now(), pg_is_in_recovery(), current_setting('transaction_read_only')::bool`, unnamed(conn)).
			Scan(&s.Database, &s.Role, &s.Version, &num, &s.Now, &s.InRecovery, &s.ReadOnly)
		s.Major = num / 10000
		s.Now = s.Now.UTC()
		return err
	})
	if err != nil {
		return Server{}, fmt.Errorf("identify the server: %w", err)
	}
	return s, nil
}

// host is where the connection leads. Of several servers in a connection string the driver does not tell which one it
// took; the socket does.
func host(conn *pgx.Conn) (string, int) {
	c := conn.Config()
	several := slices.ContainsFunc(c.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != c.Host || f.Port != c.Port })
	if addr, ok := conn.PgConn().Conn().RemoteAddr().(*net.TCPAddr); ok && several {
		return addr.IP.String(), addr.Port
	}
	return c.Host, int(c.Port)
}

// Holder is what keeps vacuum from giving the space of removed rows back to the table.
type Holder struct {
	PID   int // 0 for a slot or a prepared transaction
	What  string
	App   string
	Since time.Duration // how long it has been open; 0 where that is not known
}

// holdersSQL finds the oldest snapshot or transaction in this database that vacuum must respect.
const holdersSQL = `
SELECT a.pid, coalesce(a.state, 'a background process'), coalesce(a.application_name, ''), extract(epoch FROM now() - a.xact_start)::float8
  FROM pg_stat_activity a
 WHERE a.pid <> pg_backend_pid() AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL) AND a.datname = current_database()
   AND a.xact_start < now() - $1::text::interval
UNION ALL
SELECT 0, 'prepared transaction ' || p.gid, '', extract(epoch FROM now() - p.prepared)::float8 FROM pg_prepared_xacts p
 WHERE p.database = current_database() AND p.prepared < now() - $1::text::interval
 ORDER BY 4 DESC LIMIT 1`

// VacuumHeldBack finds the oldest transaction that has been open for longer than olderThan; nil for none. A role that may
// not see the activity of others finds less.
func VacuumHeldBack(ctx context.Context, db *DB, olderThan time.Duration) (*Holder, error) {
	var h *Holder
	err := db.with(ctx, func(conn *pgx.Conn) error {
		var x Holder
		var seconds float64
		err := conn.QueryRow(ctx, holdersSQL, unnamed(conn), fmt.Sprintf("%d seconds", int(olderThan.Seconds()))).Scan(&x.PID, &x.What, &x.App, &seconds)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		x.Since = time.Duration(seconds * float64(time.Second)).Round(time.Second)
		h = &x
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("what holds vacuum back: %w", err)
	}
	return h, nil
}
