package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/internal/proctest"
	"github.com/prunectl/prunectl/internal/report"
)

// beMain makes the test binary the command itself: the tests run real processes, with real signals and exit codes.
const beMain = "PRUNECTL_TEST_BE_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(beMain) != "" {
		main()
	}
	pgtest.Main(m)
}

// invocation is a run of the command.
type invocation struct {
	args   []string
	env    []string // beside PATH and a HOME that holds nothing
	policy string   // the text of prunectl.yaml in the working directory; "" for none
	stdin  *os.File // nil: empty
	stdout *os.File // nil: read by the test
	stderr *os.File // nil: read by the test
}

type outcome struct {
	code           int
	stdout, stderr string
}

func (o outcome) both() string { return o.stdout + o.stderr }

// running is a run that is under way.
type running struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr locked
}

// locked can be read while the run writes to it.
type locked = proctest.Buffer

// said is what is on stderr so far.
func (r *running) said() string { return r.stderr.String() }

func (in invocation) start(t *testing.T) *running {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if in.policy != "" {
		if err := os.WriteFile(filepath.Join(dir, defaultPolicy), []byte(in.policy), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := &running{t: t, cmd: exec.Command(exe, in.args...)}
	r.cmd.Dir = dir
	r.cmd.Env = append([]string{beMain + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + dir}, in.env...)
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	if in.stdin != nil {
		r.cmd.Stdin = in.stdin
	}
	if in.stdout != nil {
		r.cmd.Stdout = in.stdout
	}
	if in.stderr != nil {
		r.cmd.Stderr = in.stderr
	}
	proctest.Start(t, r.cmd)
	return r
}

func (r *running) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatalf("%v: %s", err, r.stderr.String())
	}
}

func (r *running) wait() outcome {
	r.t.Helper()
	code := proctest.Wait(r.t, r.cmd, 2*time.Minute)
	return outcome{code, r.stdout.String(), r.stderr.String()}
}

func (in invocation) run(t *testing.T) outcome {
	t.Helper()
	return in.start(t).wait()
}

// must asserts the exit code.
func (o outcome) must(t *testing.T, code int) outcome {
	t.Helper()
	if o.code != code {
		t.Fatalf("exit code %d instead of %d\nstdout: %s\nstderr: %s", o.code, code, o.stdout, o.stderr)
	}
	return o
}

// document reads stdout as the one document of -o json, and holds it against the published schema.
func (o outcome) document(t *testing.T) report.Report {
	t.Helper()
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(o.stdout))
	if err != nil {
		t.Fatalf("stdout is not one JSON document: %v\nstdout: %s\nstderr: %s", err, o.stdout, o.stderr)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(instance); err != nil {
		t.Fatalf("%v\n%s", err, o.stdout)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.ExitCode != o.code {
		t.Errorf("the document says exit code %d, the process %d", r.ExitCode, o.code)
	}
	return r
}

// sweep is the entry of a sweep in the document.
func sweepOf(t *testing.T, r report.Report, name string) report.Sweep {
	t.Helper()
	for _, s := range r.Sweeps {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no sweep %s in the report: %+v", name, r)
	return report.Sweep{}
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}

func lacks(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if strings.Contains(text, p) {
			t.Errorf("%q is in:\n%s", p, text)
		}
	}
}

// eventually polls until the condition holds: for what another process does, which tells nobody.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not within a minute: %s", what)
}
