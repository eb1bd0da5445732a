package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgserver"
)

// EnvDSN names the environment variable with the connection string of a server
// to test on.
const EnvDSN = "PRUNECTL_TEST_DSN"

// noServer tells a person who has no server how to get one.
const noServer = `no PostgreSQL server to test with; any one of these will do:
  - install PostgreSQL's server programs, 14 or later (Debian: postgresql; Homebrew: postgresql@17),
    or say where they are: PGTEST_BINDIR=/folder/with/initdb/and/postgres
  - name a server that may be filled and emptied: PRUNECTL_TEST_DSN=postgres://superuser@host/postgres
  - with Docker, from the repository's root: go -C internal/pgtest/containers run . -- go test ./...
this is what was tried: %w`

// settings are those of every server that is started here.
var settings = []string{
	"max_connections=200", "timezone=UTC", "log_timezone=UTC",
	"autovacuum=off",                            // nothing but the test changes its tables and statistics
	"max_wal_senders=10", "wal_keep_size=128MB", // a standby may follow
}

// startTimeout bounds finding and starting a server, on a loaded machine.
const startTimeout = 2 * time.Minute

// instance is the server of this test binary.
type instance struct {
	dsn     string           // a superuser's, of a database for maintenance
	version string           // "15.14"
	major   int              // 15
	own     *pgserver.Server // nil where PRUNECTL_TEST_DSN named it
}

// server finds or starts the server of this test binary, once.
var server = sync.OnceValues(func() (*instance, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	in, how := &instance{dsn: os.Getenv(EnvDSN)}, EnvDSN
	if in.dsn == "" {
		own, err := pgserver.Start(ctx, pgserver.Options{
			Settings: append([]string{"shared_buffers=256MB"}, settings...),
		})
		if err != nil {
			return nil, fmt.Errorf(noServer, err)
		}
		atEnd(func() error { return own.Stop() })
		in.own, in.dsn, how = own, own.DSN("postgres"), own.How
	}
	if err := in.identify(ctx); err != nil {
		return nil, fmt.Errorf("the server of %s: %w", how, err)
	}
	fmt.Fprintf(os.Stderr, "pgtest: PostgreSQL %s, %s\n", in.version, how)
	return in, nil
})

// identify asks the server for its version and whether it will do.
func (in *instance) identify(ctx context.Context) error {
	return in.admin(ctx, func(conn *pgx.Conn) error {
		var num string
		var super bool
		err := conn.QueryRow(ctx, `
			select current_setting('server_version'), current_setting('server_version_num'), rolsuper
			from pg_roles where rolname = current_user`).Scan(&in.version, &num, &super)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(num)
		if err != nil {
			return err
		}
		in.major = n / 10000
		in.version, _, _ = strings.Cut(in.version, " ") // Debian adds its package's
		if in.major < 14 {
			return fmt.Errorf("it is PostgreSQL %s; 14 or later is needed", in.version)
		}
		if !super {
			return errors.New("the role is no superuser; tests make roles and databases")
		}
		return nil
	})
}

// admin runs f on a connection to the maintenance database. The connection is
// not kept: a test that counts goroutines or sessions must not see it.
func (in *instance) admin(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, in.dsn)
	if err != nil {
		return err // pgx's text has no password in it
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return f(conn)
}

// exec runs one statement on the maintenance database.
func (in *instance) exec(ctx context.Context, sql string) error {
	return in.admin(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
}

// need is the server, or the end of the test.
func need(t testing.TB) *instance {
	t.Helper()
	in, err := server()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return in
}

// Major is the server's major version: 15.
func Major(t testing.TB) int {
	t.Helper()
	return need(t).major
}

// suffix keeps the names of this process's databases apart from others'.
var suffix = sync.OnceValue(func() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
})
