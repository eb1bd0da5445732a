//go:build unix

package failures

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/prunectl/prunectl/internal/proctest"
	"github.com/prunectl/prunectl/internal/report"
)

// patience is how long the command may take to end.
const patience = time.Minute

// process is a run of the command.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr proctest.Buffer
}

// prepare makes ready a run over the policy file; change may be nil.
func (s *scene) prepare(file string, change func(*exec.Cmd)) *process {
	s.t.Helper()
	dir := s.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prunectl.yaml"), []byte(file), 0o600); err != nil {
		s.t.Fatal(err)
	}
	p := &process{cmd: exec.Command(s.bin, "sweep", "-o", "json")}
	p.cmd.Dir = dir
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "DATABASE_URL=" + s.dsn}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if change != nil {
		change(p.cmd)
	}
	return p
}

func (s *scene) start(file string) *process {
	s.t.Helper()
	p := s.prepare(file, nil)
	p.begin(s.t)
	return p
}

func (p *process) begin(t *testing.T) {
	t.Helper()
	proctest.Start(t, p.cmd)
}

// sweep is a run to its end.
func (s *scene) sweep(file string) *process {
	s.t.Helper()
	return s.start(file)
}

// wait is the exit code, -1 where a signal ended the process.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	return proctest.Wait(t, p.cmd, patience)
}

// must waits for the exit code and returns the report, which is of its schema and says the same code.
func (p *process) must(t *testing.T, code int) report.Report {
	t.Helper()
	if got := p.wait(t); got != code {
		t.Fatalf("exit code %d instead of %d\nstdout: %s\nstderr: %s", got, code, p.stdout.String(), p.stderr.String())
	}
	r := read(t, p.stdout.String())
	if r.ExitCode != code {
		t.Errorf("the report says exit code %d, the process %d", r.ExitCode, code)
	}
	return r
}

// says looks for words on stderr.
func (p *process) says(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(p.stderr.String(), w) {
			t.Errorf("%q is not said: %s", w, p.stderr.String())
		}
	}
}

var published = sync.OnceValues(func() (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	return c.Compile("../../docs/report.schema.json")
})

func read(t *testing.T, text string) report.Report {
	t.Helper()
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("stdout is not one document: %v\n%s", err, text)
	}
	schema, err := published()
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(instance); err != nil {
		t.Errorf("the report is not of its schema: %v", err)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// of is the entry of a sweep in a report.
func of(t *testing.T, r report.Report, name string) report.Sweep {
	t.Helper()
	for _, sw := range r.Sweeps {
		if sw.Name == name {
			return sw
		}
	}
	t.Fatalf("no sweep %s in the report", name)
	return report.Sweep{}
}
