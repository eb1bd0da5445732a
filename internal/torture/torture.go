package torture

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Settings are those of a server that is started for a torture.
var Settings = []string{
	"track_commit_timestamp=on", "max_connections=200", "shared_buffers=256MB", "max_wal_size=4GB", "timezone=UTC", "log_timezone=UTC",
	"autovacuum_naptime=2s", "autovacuum_vacuum_cost_delay=0", // what is dead by the thousand a second is not left to lie
}

// How long what is not a part of the torture itself may take.
const (
	openPatience  = time.Minute
	endPatience   = 5 * time.Minute  // for the actors to end what they have in hand, and for the last drains
	judgePatience = 15 * time.Minute // for the questions to a ledger of many millions
)

// deadlockTimeout is when the server looks for deadlocks, of users and sweepers alike. It is longer than a batch takes on a
// machine with much else to do: a sweep gives way after its own lock timeout, but its locks may be older than that.
const deadlockTimeout = "3s"

// Options say where and for how long.
type Options struct {
	DSN       string        // of a superuser, on a server with track_commit_timestamp; a database is made there, and dropped
	Random    uint64        // the number that all chance comes from
	RowEvents int64         // rows inserted, updated and deleted by all, at which it ends; 0: only MaxTime ends it
	MaxTime   time.Duration // after which the actors end, however far they came; it must be given
	Tell      func(format string, a ...any)
	TellEach  time.Duration // between two lines of progress; 0: 10 s

	only     []string                                                  // families; nil: all
	deadlock string                                                    // deadlock_timeout; "": deadlockTimeout
	first    bool                                                      // end at the first violation that the ledger shows
	wrong    func(context.Context, *world, *family) ([]sweeper, error) // in the place of the right ones
}

// Run tortures until one of the bounds, or until ctx ends, and judges. The error is for a torture that could not be carried
// out; what it found is in the report, which is nil beside an error.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	if o.MaxTime <= 0 {
		return nil, errors.New("a torture needs an end: give a largest time")
	}
	if o.Tell == nil {
		o.Tell = func(string, ...any) {}
	}
	if o.TellEach <= 0 {
		o.TellEach = 10 * time.Second
	}
	o.deadlock = cmp.Or(o.deadlock, deadlockTimeout)
	w := &world{o: o, stop: make(chan struct{}), started: time.Now()}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.open(ctx); err != nil {
		return nil, fmt.Errorf("torture with the random number %d: %w", o.Random, err)
	}
	o.Tell("random number %d, PostgreSQL %s, %d users and %d sweepers over %s", o.Random, w.version, w.count(func(f *family) int { return len(f.users) }),
		w.count(func(f *family) int { return len(f.sweepers) }), strings.Join(w.names(), ", "))
	w.act(ctx)
	report, err := w.judge()
	if err != nil {
		return nil, fmt.Errorf("torture with the random number %d: judge: %w", o.Random, err)
	}
	return report, nil
}

// world is a torture on its way.
type world struct {
	o        Options
	config   *pgx.ConnConfig // leads to the database of the torture
	admin    *pgx.Conn       // where the database is made and dropped
	desk     *pgx.Conn       // for questions
	database string
	version  string
	families []*family

	started time.Time
	ended   time.Time // of the actors
	once    sync.Once
	stop    chan struct{} // closed: the actors end what they have in hand
	reason  string        // why it was closed
	events  atomic.Int64  // rows inserted, updated and deleted by users and sweepers

	mu         sync.Mutex
	violations []violation
	timeouts   int           // statements of users that ended by their lock timeout
	slowest    time.Duration // the longest statement of a user, and what it was
	slowestIs  string
	behind     time.Duration // the longest wait of a user behind a sweep that was seen
}

// violation is one thing that must not be.
type violation struct{ family, what string }

// violated takes a violation down. A torture that goes wrong goes wrong often: the first hundred are enough to read.
func (w *world) violated(family, format string, a ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.violations) < 100 {
		w.violations = append(w.violations, violation{family, fmt.Sprintf(format, a...)})
	}
}

func (w *world) end(reason string) {
	w.once.Do(func() {
		w.reason = reason
		close(w.stop)
	})
}

func (w *world) over() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// pause waits, or returns early when the torture ends.
func (w *world) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.stop:
	}
}

func (w *world) count(of func(*family) int) (n int) {
	for _, f := range w.families {
		n += of(f)
	}
	return n
}

func (w *world) names() (names []string) {
	for _, f := range w.families {
		names = append(names, f.name)
	}
	return names
}

// open makes the database, its tables and its actors.
func (w *world) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	config, err := pgx.ParseConfig(w.o.DSN)
	if err != nil {
		return err // pgx's text has no password in it
	}
	if w.admin, err = pgx.ConnectConfig(ctx, config); err != nil {
		return err
	}
	var tracked bool
	if err := w.admin.QueryRow(ctx, "SELECT current_setting('server_version'), current_setting('track_commit_timestamp')::bool").Scan(&w.version, &tracked); err != nil {
		return err
	}
	w.version, _, _ = strings.Cut(w.version, " ") // Debian adds its package's
	if !tracked {
		return errors.New("the server does not keep when a transaction was committed: set track_commit_timestamp = on and restart it")
	}
	name := "torture_" + strings.ToLower(rand.Text()[:8])
	if _, err := w.admin.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return err
	}
	w.database = name
	w.config = config.Copy()
	w.config.Database = name
	if w.desk, err = w.connect(ctx, "desk", pgx.QueryExecModeCacheStatement); err != nil {
		return err
	}
	if err := w.desk.PgConn().Exec(ctx, schema).Close(); err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	for _, f := range everyFamily() {
		if w.o.only == nil || slices.Contains(w.o.only, f.name) {
			w.families = append(w.families, f)
		}
	}
	for _, f := range w.families {
		if err := w.people(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// connect is a new connection under a name of its own. What it cannot get in eight seconds a user does without, and says so.
func (w *world) connect(ctx context.Context, name string, mode pgx.QueryExecMode) (*pgx.Conn, error) {
	c := w.config.Copy()
	c.RuntimeParams["application_name"] = name
	c.RuntimeParams["lock_timeout"] = "8s"
	c.RuntimeParams["deadlock_timeout"] = w.o.deadlock
	c.DefaultQueryExecMode = mode
	return pgx.ConnectConfig(ctx, c)
}

// act lets everybody work until the end of the torture, and waits until they have ended. The work itself does not depend on
// ctx: what is in hand is brought to its end, so that every count is true.
func (w *world) act(ctx context.Context) {
	work, cancel := context.WithTimeout(context.Background(), w.o.MaxTime+endPatience)
	defer cancel()
	var actors, watchers sync.WaitGroup
	gone := make(chan struct{})
	watchers.Go(func() { w.watch(work, ctx, gone) })
	for _, f := range w.families {
		for _, u := range f.users {
			actors.Go(func() { w.use(work, u) })
		}
		for _, s := range f.sweepers {
			actors.Go(func() { w.sweep(work, s) })
		}
	}
	actors.Wait()
	w.ended = time.Now()
	close(gone)
	watchers.Wait()
	w.lastDrains(work)
}

// close ends every connection and drops the database. It does not take the caller's context, which may be over.
func (w *world) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), openPatience)
	defer cancel()
	for _, f := range w.families {
		for _, u := range f.users {
			_ = u.conn.Close(ctx)
		}
		for _, s := range f.sweepers {
			s.close()
		}
	}
	if w.desk != nil {
		_ = w.desk.Close(ctx)
	}
	if w.admin == nil {
		return nil
	}
	defer func() { _ = w.admin.Close(ctx) }()
	if w.database == "" {
		return nil
	}
	if _, err := w.admin.Exec(ctx, "DROP DATABASE "+w.database+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", w.database, err)
	}
	return nil
}
