package measure

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/bench/internal/place"
	"github.com/prunectl/prunectl/internal/pgserver"
)

// WithLoad is the population with pgbench's own tables beside it.
func WithLoad(pop place.Population) place.Population {
	return place.Population{Name: pop.Name + "_load", On: &pop, Fill: func(ctx context.Context, c *pgx.ConnConfig) error {
		_, err := pgbench(ctx, c, "-i", "-q", "-s", strconv.Itoa(loadScale))
		return err
	}}
}

const (
	loadScale   = 10
	loadClients = 4
)

func pgbench(ctx context.Context, c *pgx.ConnConfig, args ...string) (string, error) {
	bin, err := pgserver.FindProgram("pgbench")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Env = environment(c)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("pgbench: %w: %s", err, out)
	}
	return string(out), nil
}

var tps = regexp.MustCompile(`tps = ([0-9.]+) \(without`)

// LoadMaximum is how many transactions a second pgbench reaches on the clone.
func LoadMaximum(ctx context.Context, clone *place.Clone, d time.Duration) (float64, error) {
	out, err := pgbench(ctx, clone.Config(), "-n", "-c", strconv.Itoa(loadClients), "-j", "2", "-T", seconds(d))
	if err != nil {
		return 0, err
	}
	m := tps.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("pgbench told no tps: %s", out)
	}
	return strconv.ParseFloat(m[1], 64)
}

func seconds(d time.Duration) string { return strconv.Itoa(max(1, int(d.Seconds()+0.5))) }

// Load is what pgbench noticed while something ran beside it.
type Load struct {
	Done    int           // transactions
	Over    time.Duration // in this time
	Latency []float64     // of each, in milliseconds, the wait for its turn included; sorted
}

// Add puts two looks together.
func (l *Load) Add(o Load) {
	l.Done += o.Done
	l.Over += o.Over
	l.Latency = append(l.Latency, o.Latency...)
	slices.Sort(l.Latency)
}

// settle is how long pgbench runs before something is begun beside it, and after it.
const settle = time.Second

// Beside runs pgbench at a rate on the clone, for at most d, and beside while it runs; it looks at the transactions that
// ended while beside did. beside is to return when its context ends.
func Beside(ctx context.Context, clone *place.Clone, rate float64, d time.Duration, beside func(context.Context) error) (l Load, err error) {
	dir, err := os.MkdirTemp("", "prunectl-bench-")
	if err != nil {
		return l, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	var failed error
	go func() {
		defer close(ended)
		_, failed = pgbench(ctx, clone.Config(), "-n", "-c", strconv.Itoa(loadClients), "-j", "2", "-T", seconds(d+2*settle),
			"--rate", strconv.FormatFloat(rate, 'f', 1, 64), "--log", "--log-prefix", filepath.Join(dir, "tx"))
	}()
	wait(ctx, settle)
	within, stop := context.WithTimeout(ctx, d)
	from := time.Now()
	err = beside(within)
	to := time.Now()
	stop()
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	if err != nil {
		cancel()
		<-ended
		return l, err
	}
	<-ended
	if failed != nil {
		return l, failed
	}
	return readLog(dir, from, to)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// readLog reads pgbench's log of transactions: client, number, latency in microseconds, script, and when it ended, in
// seconds and microseconds.
func readLog(dir string, from, to time.Time) (l Load, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "tx.*"))
	if err == nil && len(names) == 0 {
		err = errors.New("pgbench left no log of its transactions")
	}
	if err != nil {
		return l, err
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return l, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var client, number, latency, script, sec, usec int64
			if _, err := fmt.Sscan(lines.Text(), &client, &number, &latency, &script, &sec, &usec); err != nil {
				continue // a transaction that was skipped or failed has words there
			}
			if at := time.Unix(sec, usec*1000); at.Before(from) || at.After(to) {
				continue
			}
			l.Latency = append(l.Latency, float64(latency)/1000)
		}
		_ = f.Close()
		if err := lines.Err(); err != nil {
			return l, err
		}
	}
	slices.Sort(l.Latency)
	l.Done, l.Over = len(l.Latency), to.Sub(from)
	return l, nil
}
