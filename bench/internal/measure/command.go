package measure

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/bench/internal/place"
	"github.com/prunectl/prunectl/bench/internal/workload"
)

// Memory is what the command needed to drain.
type Memory struct {
	Rows   int     `json:"rows"`
	MB     float64 `json:"peak_mb"`       // VmHWM at the end, in 10^6 bytes
	Tenth  float64 `json:"peak_mb_tenth"` // the same when a tenth of the time was over
	Second float64 `json:"seconds"`       // the whole command
	OK     bool    `json:"measured"`      // the system tells it: Linux does
}

// lookEvery is how often the command is asked for its memory. Its peak only grows, so what is missed is what the last
// moment added.
const lookEvery = 10 * time.Millisecond

// Command builds the command, has it drain the log, and watches its peak of memory.
func Command(ctx context.Context, p *place.Place, log workload.Log) (m Memory, err error) {
	dir, err := os.MkdirTemp("", "prunectl-bench-")
	if err != nil {
		return m, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin, file := filepath.Join(dir, "prunectl"), filepath.Join(dir, "prunectl.yaml")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", bin, "github.com/prunectl/prunectl/cmd/prunectl").CombinedOutput(); err != nil {
		return m, fmt.Errorf("build the command: %w: %s", err, out)
	}
	if err := os.WriteFile(file, []byte(workload.LogPolicy), 0o600); err != nil {
		return m, err
	}
	clone, err := p.Clone(ctx, log.Population())
	if err != nil {
		return m, err
	}
	defer func() {
		if e := clone.Drop(context.WithoutCancel(ctx)); err == nil {
			err = e
		}
	}()
	cmd := exec.CommandContext(ctx, bin, "sweep", "--policy", file, "--as-of", log.LogNow().Format(time.RFC3339), "--detailed-exitcode")
	cmd.Env = environment(clone.Config())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return m, err
	}
	type look struct {
		at time.Duration
		mb float64
	}
	done := make(chan []look)
	stop := make(chan struct{})
	go func() {
		var looks []look
		for {
			if mb, ok := peak(cmd.Process.Pid); ok {
				looks = append(looks, look{time.Since(start), mb})
			}
			select {
			case <-stop:
				done <- looks
				return
			case <-time.After(lookEvery):
			}
		}
	}()
	err = cmd.Wait()
	took := time.Since(start)
	close(stop)
	looks := <-done
	if err != nil {
		return m, fmt.Errorf("prunectl sweep: %w: %s", err, out.String())
	}
	m = Memory{Rows: log.Rows, Second: took.Seconds(), OK: len(looks) > 0}
	for _, l := range looks {
		m.MB = max(m.MB, l.mb)
		if l.at <= took/10 {
			m.Tenth = m.MB
		}
	}
	return m, nil
}

// environment is ours, leading a program to a database. A password goes no other way.
func environment(c *pgx.ConnConfig) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "DATABASE_URL=") || strings.HasPrefix(e, "PRUNECTL_") || strings.HasPrefix(e, "PG")
	})
	ssl := "disable"
	if c.TLSConfig != nil {
		ssl = "require"
	}
	return append(env, "PGHOST="+c.Host, fmt.Sprintf("PGPORT=%d", c.Port), "PGUSER="+c.User, "PGPASSWORD="+c.Password, "PGDATABASE="+c.Database, "PGSSLMODE="+ssl)
}
