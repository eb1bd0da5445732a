package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/inboxoutbox/retention"
	"github.com/prunectl/prunectl/migrations/preflight"
)

// readiness says whether the database is there, is as this program was made for, and has the policy that it came with. The
// answer is kept for a while, so that it can be asked often.
type readiness struct {
	pool   *pgxpool.Pool
	schema string
	policy inboxoutbox.Settings
	keep   time.Duration

	mu    sync.Mutex
	asked time.Time
	err   error
}

// askTimeout bounds a question: a database that hangs is one that is not there.
const askTimeout = 3 * time.Second

// check is nil where all is well.
func (r *readiness) check(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.asked.IsZero() && time.Since(r.asked) < r.keep {
		return r.err
	}
	// Not by the context of who asks: if he goes away, that says nothing about the database.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	before := r.err
	r.err = r.ask(ctx)
	r.asked = time.Now()
	switch {
	case r.err != nil && (before == nil || before.Error() != r.err.Error()):
		log.Printf("not ready: %v", r.err)
	case r.err == nil && before != nil:
		log.Print("ready again")
	}
	return r.err
}

func (r *readiness) ask(ctx context.Context) error {
	report, err := preflight.Check(ctx, r.pool, component, r.schema)
	if err != nil {
		return err
	}
	if err := report.Err(); err != nil {
		return err
	}
	p, ok, err := retention.ReadPolicy(ctx, r.pool, r.schema)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("the policy that was recorded is gone; start again")
	case p.Fingerprint != r.policy.Fingerprint():
		return &retention.DifferenceError{Schema: report.Schema, Recorded: p, Fields: p.Fields.Differences(r.policy.Fields())}
	}
	return nil
}

// answers are /readyz, which is 200 while the consumer can work, and /healthz, which is 200 while it lives: a restart helps
// against the second one, and never against a schema.
func (c *consumer) answers() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		err := c.ready.check(r.Context())
		switch {
		case c.stopped():
			http.Error(w, "not ready: ending", http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
		default:
			fmt.Fprintln(w, "ready")
		}
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") })
	return mux
}
