package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// callTimeout bounds each call that a helper makes on its own.
const callTimeout = time.Minute

// DB is a database that one test owns.
type DB struct {
	Name string
	DSN  string // as a superuser

	abandoned bool
}

// Abandon says that the test leaves sessions in the database on purpose, when it
// ends. Otherwise they are a failure.
func (d *DB) Abandon() { d.abandoned = true }

// New makes an empty database, which is dropped when the test ends, whoever is
// still connected to it. Whoever is has failed the test, see [DB.Abandon].
func New(t testing.TB) *DB {
	t.Helper()
	return need(t).clone(t, "template0")
}

// clone makes a database from another one to which nobody is connected.
func (in *instance) clone(t testing.TB, template string) *DB {
	t.Helper()
	db, err := in.database(nameFor(t.Name()))
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if err := in.exec(ctx, "create database "+ident(db.Name)+" template "+ident(template)); err != nil {
		t.Fatalf("pgtest: create database %s: %v", db.Name, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		if err := in.admin(ctx, func(conn *pgx.Conn) error {
			if !db.abandoned && !t.Failed() { // a test that failed may have left anybody
				left, err := leftSessions(ctx, conn, db.Name, leakPatience)
				if err != nil {
					return err
				}
				if left != "" {
					t.Errorf("pgtest: sessions are left in the test's database; close them before it ends:\n%s", left)
				}
			}
			return dropOn(ctx, conn, db.Name)
		}); err != nil {
			t.Errorf("pgtest: drop database %s: %v", db.Name, err)
		}
	})
	return db
}

func (in *instance) drop(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if err := in.admin(ctx, func(conn *pgx.Conn) error { return dropOn(ctx, conn, name) }); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

func dropOn(ctx context.Context, admin *pgx.Conn, name string) error {
	_, err := admin.Exec(ctx, "drop database if exists "+ident(name)+" with (force)")
	return err
}

// database names a database on the server; it need not exist yet.
func (in *instance) database(name string) (*DB, error) {
	dsn, err := rewrite(in.dsn, func(u *url.URL) { u.Path = "/" + name })
	return &DB{Name: name, DSN: dsn}, err
}

// rewrite changes a connection string, which must be a URL.
func rewrite(dsn string, change func(*url.URL)) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		// The string itself stays out of the message: it may hold a password.
		return "", fmt.Errorf("%s is no URL of the form postgres://user@host/database", EnvDSN)
	}
	change(u)
	return u.String(), nil
}

func ident(name string) string { return pgx.Identifier{name}.Sanitize() }

var (
	count     atomic.Int64
	unfitting = regexp.MustCompile(`[^a-z0-9]+`)
)

// nameFor makes a database's name out of a test's, so that one who looks at
// the server sees who made it.
func nameFor(test string) string {
	short := strings.Trim(unfitting.ReplaceAllString(strings.ToLower(test), "_"), "_")
	if len(short) > 36 {
		short = short[:36]
	}
	return fmt.Sprintf("pgtest_%s_%s_%d", short, suffix(), count.Add(1))
}

// DSNAs is the connection string of the same database as another role; see
// [Role].
func (d *DB) DSNAs(role string) string {
	dsn, err := rewrite(d.DSN, func(u *url.URL) {
		if password, ok := u.User.Password(); ok {
			u.User = url.UserPassword(role, password)
		} else {
			u.User = url.User(role)
		}
	})
	if err != nil {
		panic("pgtest: " + err.Error()) // a DB of ours has a URL
	}
	return dsn
}

// Conn is a new connection to the database, closed when the test ends.
func (d *DB) Conn(t testing.TB, opts ...func(*pgx.ConnConfig)) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(d.DSN)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	for _, o := range opts {
		o(config)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() { closeConn(conn) })
	return conn
}

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx) // the test may have broken it on purpose
}

// Pool is a new pool on the database, closed when the test ends. A test that
// still holds one of its connections then waits for it: release them first.
func (d *DB) Pool(t testing.TB, opts ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(d.DSN)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	for _, o := range opts {
		o(config)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(pool.Close)
	if err := pool.Ping(ctx); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return pool
}

// Exec runs SQL as a superuser. Without arguments it may be a script of several
// statements, which then are one transaction: what must stand alone, as VACUUM
// or CREATE INDEX CONCURRENTLY, needs a call of its own.
func (d *DB) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	d.with(t, sql, func(ctx context.Context, conn *pgx.Conn) error {
		if len(args) == 0 {
			return conn.PgConn().Exec(ctx, sql).Close()
		}
		_, err := conn.Exec(ctx, sql, args...)
		return err
	})
}

// Int is the first column of a query's one row, as a number.
func (d *DB) Int(t testing.TB, sql string, args ...any) (n int64) {
	t.Helper()
	d.one(t, &n, sql, args)
	return n
}

// Text is the first column of a query's one row, of any type, as the text that
// psql would print.
func (d *DB) Text(t testing.TB, sql string, args ...any) (s string) {
	t.Helper()
	d.one(t, &s, sql, append([]any{pgx.QueryResultFormats{pgx.TextFormatCode}}, args...))
	return s
}

func (d *DB) one(t testing.TB, value any, sql string, args []any) {
	t.Helper()
	d.with(t, sql, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		n := 0
		for ; rows.Next(); n++ {
			if err := rows.Scan(value); err != nil {
				return err
			}
		}
		if rows.Err() == nil && n != 1 {
			return fmt.Errorf("%d rows instead of one", n)
		}
		return rows.Err()
	})
}

// with runs f on a connection that is closed afterwards, so that no session of
// ours holds the database open or sees what a test does to others.
func (d *DB) with(t testing.TB, sql string, f func(context.Context, *pgx.Conn) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*callTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, d.DSN)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	defer closeConn(conn)
	if err := f(ctx, conn); err != nil {
		t.Fatalf("pgtest: %v\n%s", err, sql)
	}
}
