package foreground

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// bench is pgbench on a database.
type bench struct {
	program, script string
	env             []string
}

// load is what pgbench said of a run: transactions, how many of them failed, in a second, and the 99th percentile of their
// latencies in milliseconds, the wait for their turn included.
type load struct {
	done     int
	failed   string
	tps, p99 float64
}

var (
	tps       = regexp.MustCompile(`tps = ([0-9.]+) \(without`)
	processed = regexp.MustCompile(`number of transactions actually processed: (\d+)`)
	failures  = regexp.MustCompile(`number of failed transactions: (\d+)`)
)

func newBench(t *testing.T, db *pgtest.DB) bench {
	t.Helper()
	return bench{pgtest.Program(t, "pgbench"), scriptFile(t), environment(db.Conn(t).Config())}
}

// run runs pgbench for so long, at a rate or, with 0, as fast as it can.
func (b bench) run(ctx context.Context, t *testing.T, d time.Duration, rate float64) (l load) {
	dir, err := os.MkdirTemp("", "prunectl-foreground-")
	if err != nil {
		t.Error(err)
		return l
	}
	defer func() { _ = os.RemoveAll(dir) }()
	args := []string{"-n", "-c", "4", "-j", "2", "-T", strconv.Itoa(int(d.Seconds())), "-f", b.script, "--log", "--log-prefix", filepath.Join(dir, "tx")}
	if rate > 0 {
		args = append(args, "--rate", strconv.FormatFloat(rate, 'f', 1, 64))
	}
	cmd := exec.CommandContext(ctx, b.program, args...)
	cmd.Env = append(b.env, "PGAPPNAME=application")
	out, err := cmd.CombinedOutput()
	text := string(out)
	// A client whose transaction ends with an error stops, and is said to be aborted.
	if err != nil || strings.Contains(text, "aborted") || strings.Contains(text, "ERROR") {
		t.Errorf("pgbench: %v\n%s", err, text)
		return l
	}
	if m := processed.FindStringSubmatch(text); m != nil {
		l.done, _ = strconv.Atoi(m[1])
	}
	if m := tps.FindStringSubmatch(text); m != nil {
		l.tps, _ = strconv.ParseFloat(m[1], 64)
	}
	l.failed = "0" // before 15 it does not say: a client of a failed transaction was aborted
	if m := failures.FindStringSubmatch(text); m != nil {
		l.failed = m[1]
	}
	if l.tps == 0 {
		t.Errorf("pgbench told no rate: %s", text)
	}
	l.p99, err = latency(dir, 0.99)
	if err != nil {
		t.Error(err)
	}
	return l
}

// until waits until the application is at work.
func (b bench) until(ctx context.Context, t *testing.T, db *pgtest.DB) {
	t.Helper()
	conn := db.Conn(t)
	for working := false; !working; {
		if err := conn.QueryRow(ctx, "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'application' AND datname = current_database() AND xact_start IS NOT NULL").Scan(&working); err != nil {
			t.Fatal(err)
		}
	}
}

// latency reads a quantile off pgbench's log of transactions, in milliseconds: client, number, and latency in microseconds.
func latency(dir string, q float64) (float64, error) {
	names, err := filepath.Glob(filepath.Join(dir, "tx.*"))
	if err != nil || len(names) == 0 {
		return 0, fmt.Errorf("pgbench left %d logs of its transactions: %w", len(names), err)
	}
	var all []float64
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var client, number, micros int64
			if _, err := fmt.Sscan(lines.Text(), &client, &number, &micros); err == nil { // one that was skipped has a word there
				all = append(all, float64(micros)/1000)
			}
		}
		_ = f.Close()
		if err := lines.Err(); err != nil {
			return 0, err
		}
	}
	return quantile(all, q), nil
}
