package pgtest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// leakPatience is how long what a test ended may take to be gone: a driver closes
// a broken connection in the background, and a server's process ends after the
// client has hung up.
const leakPatience = 10 * time.Second

// ours are the goroutines that may be there once all tests have ended: those of
// the test's machinery, and of the server that is still to be stopped.
var ours = []string{
	"testing.", "os/signal.", "runtime.", "runtime/", "internal/pgserver.", "created by testing.", "goroutine running on other thread",
}

// leakedGoroutines waits until no goroutine is left but ours, and returns the
// stacks of those that stay.
func leakedGoroutines(patience time.Duration) string {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(patience); ; <-poll.C {
		left := strangers(stacks())
		if len(left) == 0 || time.Now().After(end) {
			return strings.Join(left, "\n\n")
		}
	}
}

// stacks are those of all goroutines but this one.
func stacks() []string {
	text := make([]byte, 1<<16)
	for n := runtime.Stack(text, true); ; n = runtime.Stack(text, true) {
		if n < len(text) {
			return strings.Split(strings.TrimSpace(string(text[:n])), "\n\n")[1:]
		}
		text = make([]byte, 2*len(text))
	}
}

// strangers are the stacks of goroutines that are not ours: a goroutine is whose
// code it began with, which is the last call of its stack.
func strangers(all []string) (left []string) {
next:
	for _, stack := range all {
		lines := strings.Split(stack, "\n")
		began := ""
		for _, l := range lines[1:] {
			if !strings.HasPrefix(l, "\t") && !strings.HasPrefix(l, "created by ") {
				began = l
			}
		}
		began = strings.TrimPrefix(began, "github.com/prunectl/prunectl/")
		for _, o := range ours {
			if strings.HasPrefix(began, o) {
				continue next
			}
		}
		left = append(left, stack)
	}
	return left
}

// leftSessions waits until nobody is connected to a database, and says who stays.
func leftSessions(ctx context.Context, admin *pgx.Conn, database string, patience time.Duration) (string, error) {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(patience); ; <-poll.C {
		rows, err := admin.Query(ctx, `
			select format('%s, %s since %s, its last statement: %s', pid, state, state_change, left(query, 200))
			from pg_stat_activity where datname = $1 and backend_type = 'client backend'`, database)
		if err != nil {
			return "", err
		}
		left, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(left) == 0 || time.Now().After(end) {
			return strings.Join(left, "\n"), err
		}
	}
}

// errLeak is what a test binary that leaves goroutines ends with.
func errLeak(stacks string) error {
	return fmt.Errorf("goroutines are left after the last test; end what started them:\n\n%s", stacks)
}
