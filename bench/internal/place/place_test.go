package place

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// pages fills a table whose pages are known.
var pages = Population{Name: "pages", Fill: func(ctx context.Context, c *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err = conn.Exec(ctx, "CREATE TABLE t (n int)"); err == nil {
		_, err = conn.Exec(ctx, "INSERT INTO t SELECT generate_series(1, 100000)")
	}
	return err
}}

// TestMeter holds that the meter counts what a statement on a clone read and wrote, on a server that --dsn names too, and
// that nothing is left there.
func TestMeter(t *testing.T) {
	ctx := t.Context()
	srv := pgtest.Own(t, pgserver.Options{Settings: []string{"shared_preload_libraries=pg_stat_statements"}})
	p, err := Open(ctx, Options{DSN: srv.DSN("postgres")})
	if err != nil {
		t.Fatal(err)
	}
	if p.Own || p.Major < 14 || !strings.HasPrefix(p.Version, fmt.Sprint(p.Major)) {
		t.Errorf("the place says %+v", p)
	}
	on := pages
	on.Name, on.On, on.Fill = "on", &pages, func(ctx context.Context, c *pgx.ConnConfig) error {
		return p.within(ctx, c.Database, "CREATE INDEX i ON t (n)")
	}
	for _, pop := range []Population{pages, on, pages} {
		clone, err := p.Clone(ctx, pop)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := clone.Connect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var want int64
		if err := conn.QueryRow(ctx, "SELECT relpages FROM pg_class WHERE relname = 't'").Scan(&want); err != nil {
			t.Fatal(err)
		}
		spent := func(sql string) Cost {
			before, err := clone.Cost(ctx)
			if err == nil {
				_, err = conn.Exec(ctx, sql)
			}
			if err != nil {
				t.Fatal(err)
			}
			after, err := clone.Cost(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return after.Minus(before)
		}
		if got := spent("SELECT sum(n) FROM t WHERE n % 2 = 0"); got.Buffers != want || want < 100 || got.WAL != 0 {
			t.Errorf("%s: a scan of %d pages cost %+v", pop.Name, want, got)
		}
		if got := spent("DELETE FROM t WHERE n % 100 = 0"); got.Buffers < want || got.WAL < 1000*50 {
			t.Errorf("%s: deleting 1000 rows cost %+v", pop.Name, got)
		}
		if err := clone.Drop(ctx); err != nil {
			t.Error(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	conn, err := pgx.Connect(ctx, srv.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var left int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_database WHERE datname LIKE 'bench%'").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d databases of the bench are left on the server (%v)", left, err)
	}
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_extension WHERE extname = 'pg_stat_statements'").Scan(&left); err != nil || left != 0 {
		t.Errorf("the server's own database got an extension (%v)", err)
	}
}

// TestRefusals: a place that cannot measure says what to do, and says no password.
func TestRefusals(t *testing.T) {
	ctx := t.Context()
	srv := pgtest.Own(t, pgserver.Options{})
	if _, err := Open(ctx, Options{DSN: srv.DSN("postgres")}); err == nil || !strings.Contains(err.Error(), "shared_preload_libraries") {
		t.Errorf("a server that does not count: %v", err)
	}
	if _, err := Open(ctx, Options{DSN: "postgres://u:hidden@127.0.0.1:1/x?connect_timeout=1"}); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("a server that is not there: %v", err)
	}
}

// TestImages holds that costs are counted without full page images, and times taken with them.
func TestImages(t *testing.T) {
	ctx := t.Context()
	p, err := Open(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	wal := map[bool]int64{}
	for _, on := range []bool{true, false} {
		if err := p.Images(ctx, on); err != nil {
			t.Fatal(err)
		}
		clone, err := p.Clone(ctx, pages)
		if err != nil {
			t.Fatal(err)
		}
		if err := clone.Exec(ctx, "UPDATE t SET n = n WHERE n % 1000 = 0"); err != nil {
			t.Fatal(err)
		}
		cost, err := clone.Cost(ctx)
		if err != nil {
			t.Fatal(err)
		}
		wal[on] = cost.WAL
		if err := clone.Drop(ctx); err != nil {
			t.Error(err)
		}
	}
	if wal[true] < 5*wal[false] || wal[false] == 0 {
		t.Errorf("with images %d bytes of WAL, without %d", wal[true], wal[false])
	}
}
