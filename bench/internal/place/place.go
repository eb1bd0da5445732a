package place

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgserver"
)

// Options say where to measure.
type Options struct {
	DSN string // of a superuser on a server that may be filled and emptied; "": a server of our own
	// Volatile keeps a server of our own from waiting for the disk and from writing full page images: for costs alone, which
	// are the same.
	Volatile bool
	Tell     func(format string, a ...any) // progress; nil: none
}

// Place is a server with the populations that were built on it. Its methods may be called by one goroutine at a time.
type Place struct {
	Version string // of the server: "15.18"
	Major   int
	Own     bool // the server is ours, and ends with us
	Cores   int  // of the machine of the bench

	fixed     bool // whether it writes full page images is not ours to say
	tell      func(string, ...any)
	server    *pgserver.Server
	config    *pgx.ConnConfig // leads to the database that the meter is in
	desk      *pgx.Conn
	suffix    string
	made      []string          // databases, in the order of their making
	templates map[string]string // population to database
	clones    int
}

// settings are those of a server of our own: nothing runs beside what is measured, and nothing is cut short by a
// checkpoint that happens to come.
var settings = []string{
	"shared_buffers=1GB", "max_wal_size=8GB", "checkpoint_timeout=1h", "autovacuum=off", "max_connections=50", "timezone=UTC", "log_timezone=UTC",
	"shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track=top", "pg_stat_statements.save=off",
}

const (
	startPatience = 2 * time.Minute
	endPatience   = time.Minute
)

// Open starts a server, or connects to the one that is named. What it makes there is gone after Close.
func Open(ctx context.Context, o Options) (_ *Place, err error) {
	p := &Place{Cores: runtime.NumCPU(), Own: o.DSN == "", fixed: o.DSN != "" || o.Volatile, tell: o.Tell, suffix: strings.ToLower(rand.Text()[:8]), templates: map[string]string{}}
	if p.tell == nil {
		p.tell = func(string, ...any) {}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	dsn := o.DSN
	if p.Own {
		start, cancel := context.WithTimeout(ctx, startPatience)
		defer cancel()
		if p.server, err = pgserver.Start(start, pgserver.Options{Durable: !o.Volatile, Settings: settings}); err != nil {
			return nil, fmt.Errorf("start a server to measure on: %w", err)
		}
		dsn = p.server.DSN("postgres")
	}
	// pgx's texts have no password in them.
	if p.config, err = pgx.ParseConfig(dsn); err != nil {
		return nil, err
	}
	if p.desk, err = pgx.ConnectConfig(ctx, p.config); err != nil {
		return nil, err
	}
	var num int
	var preloaded string
	err = p.desk.QueryRow(ctx, "SELECT current_setting('server_version'), current_setting('server_version_num')::int, current_setting('shared_preload_libraries')").Scan(&p.Version, &num, &preloaded)
	if err != nil {
		return nil, fmt.Errorf("ask the server who it is: %w", err)
	}
	p.Major = num / 10000
	p.Version, _, _ = strings.Cut(p.Version, " ") // Debian adds its package's
	if !strings.Contains(preloaded, "pg_stat_statements") {
		return nil, errors.New("the server does not count what statements cost: add pg_stat_statements to its shared_preload_libraries and restart it")
	}
	return p, p.openDesk(ctx)
}

// openDesk makes the database that the meter is in, so that none of the server's own gets an extension.
func (p *Place) openDesk(ctx context.Context) error {
	name, err := p.create(ctx, "desk", "template0")
	if err != nil {
		return err
	}
	_ = p.desk.Close(ctx)
	p.config = p.to(name)
	if p.desk, err = pgx.ConnectConfig(ctx, p.config); err != nil {
		return err
	}
	if _, err = p.desk.Exec(ctx, "CREATE EXTENSION pg_stat_statements"); err != nil {
		return fmt.Errorf("the server has no pg_stat_statements to install (Debian: it comes with postgresql, else with postgresql-contrib): %w", err)
	}
	return nil
}

// to is the configuration of a connection to another database of the server.
func (p *Place) to(database string) *pgx.ConnConfig {
	c := p.config.Copy()
	c.Database = database
	return c
}

// create makes a database that Close drops. A copy is made file by file: it writes no WAL.
func (p *Place) create(ctx context.Context, what, template string) (string, error) {
	name := fmt.Sprintf("bench_%s_%s", p.suffix, what)
	sql := "CREATE DATABASE " + ident(name) + " TEMPLATE " + ident(template)
	if p.Major >= 15 {
		sql += " STRATEGY file_copy"
	}
	if _, err := p.desk.Exec(ctx, sql); err != nil {
		return "", fmt.Errorf("make database %s: %w", name, err)
	}
	p.made = append(p.made, name)
	return name, nil
}

func ident(name string) string { return pgx.Identifier{name}.Sanitize() }

// Close drops what was made, and ends a server of our own. It does not take the context of the bench, which may be over.
func (p *Place) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	var errs []error
	if p.desk != nil {
		_ = p.desk.Close(ctx)
	}
	if p.server != nil {
		return p.server.Stop()
	}
	if len(p.made) == 0 {
		return nil
	}
	c := p.to("postgres")
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return fmt.Errorf("drop %s: %w", strings.Join(p.made, ", "), err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, name := range p.made {
		if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+ident(name)+" WITH (FORCE)"); err != nil {
			errs = append(errs, fmt.Errorf("drop database %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// Images says whether the server writes a full image of each page that it touches first after a checkpoint. They make the
// bytes of WAL depend on when the last checkpoint was, so costs are counted without them, and times are taken with them.
// A server that is not ours keeps its own setting.
func (p *Place) Images(ctx context.Context, on bool) error {
	if p.fixed {
		return nil
	}
	value := map[bool]string{true: "on", false: "off"}[on]
	if _, err := p.desk.Exec(ctx, "ALTER SYSTEM SET full_page_writes = "+value); err != nil {
		return err
	}
	// The checkpointer takes it over when it looks at its signals: a checkpoint that says so is one that has.
	for {
		var now bool
		if _, err := p.desk.Exec(ctx, "SELECT pg_reload_conf()"); err != nil {
			return err
		}
		if _, err := p.desk.Exec(ctx, "CHECKPOINT"); err != nil {
			return err
		}
		if err := p.desk.QueryRow(ctx, "SELECT full_page_writes FROM pg_control_checkpoint()").Scan(&now); err != nil {
			return fmt.Errorf("ask whether full_page_writes is %s: %w", value, err)
		}
		if now == on {
			return nil
		}
	}
}
