package torture

import (
	"flag"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var random = flag.Uint64("random", 0, "repeat the torture of this random `number`; 0: a new one")

// number is what all chance comes from.
func number() uint64 {
	if *random != 0 {
		return *random
	}
	return uint64(time.Now().UnixNano())
}

// server is one on which a torture can be carried out.
func server(t *testing.T) *pgserver.Server {
	t.Helper()
	return pgtest.Own(t, pgserver.Options{Settings: append([]string{"autovacuum=on"}, Settings...)})
}

// shortTime is how long the actors of the short form work. The server's start, the last drains and the judging come on top.
const shortTime = 30 * time.Second

// shortEvents is what the short form must reach to say something, on two cores with much else to do: it does four
// times as much there, and ten on quiet ones.
const shortEvents = 50_000

// TestTorture is the short form. `go run ./internal/torture/run` is the long one.
func TestTorture(t *testing.T) {
	s := server(t)
	ignore := goleak.IgnoreCurrent()
	r, err := Run(t.Context(), Options{DSN: s.DSN("postgres"), Random: number(), MaxTime: shortTime, Tell: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, ignore)
	if err := r.Write(t.Output()); err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations() {
		t.Errorf("random number %d: %s", r.Random, v)
	}
	if r.RowEvents < shortEvents {
		t.Errorf("only %d row events in %s, which is too few to say something; wanted %d", r.RowEvents, r.Took, shortEvents)
	}
}

// TestNeedsCommitTimes: without them half of the proof is missing, so that such a server is refused.
func TestNeedsCommitTimes(t *testing.T) {
	s := pgtest.Own(t, pgserver.Options{})
	_, err := Run(t.Context(), Options{DSN: s.DSN("postgres"), Random: 1, MaxTime: time.Second})
	if err == nil || !strings.Contains(err.Error(), "set track_commit_timestamp = on") {
		t.Errorf("the error is %v", err)
	}
	if _, err := Run(t.Context(), Options{DSN: s.DSN("postgres"), Random: 1}); err == nil {
		t.Error("a torture without an end began")
	}
}
