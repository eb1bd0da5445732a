//go:build unix

package failures

import (
	"os"
	"os/exec"
	"testing"
)

// TestNobodyHears: whoever was to hear what the command says is gone. The rows go as ever, and the report is whole where it
// can be written; where it cannot, that is a failure.
func TestNobodyHears(t *testing.T) {
	t.Parallel()
	r, closed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	t.Cleanup(func() { _ = closed.Close() })
	for _, c := range []struct {
		name           string
		stdout, stderr bool // it can be written
		code           int
	}{{"stderr is closed", true, false, 0}, {"stdout is closed", false, true, 1}, {"both are closed", false, false, 1}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := onShared(t, 60, 200)
			before := s.all
			run := s.prepare(policy(""), func(cmd *exec.Cmd) {
				if !c.stdout {
					cmd.Stdout = closed
				}
				if !c.stderr {
					cmd.Stderr = closed
				}
			})
			run.begin(t)
			if c.stdout {
				s.honest(before, run.must(t, c.code))
			} else if code := run.wait(t); code != c.code {
				t.Errorf("exit code %d", code)
			}
			if c.stderr {
				run.says(t, "prunectl: the result could not be written: ", "removed=60 children=120", "removed=200")
			}
			if left := s.rows(); left.sum() != 0 {
				t.Errorf("%+v are left", left)
			}
			s.whole()
			s.quiet()
		})
	}
}
