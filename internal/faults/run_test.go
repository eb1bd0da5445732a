package faults

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/prunectl/prunectl/internal/proctest"
	"github.com/prunectl/prunectl/internal/report"
)

// run is one run of the command, and what must come of it. Counts that are not given must be 0.
type run struct {
	name   string // of its test; the arguments where it is empty
	args   string // "sweep" where it is empty; -o json is added where the command reports
	policy string // the sweeps: the head of a file goes before them
	file   string // the whole file instead, as it is
	env    []string
	params string                // of the connection string, between semicolons: "default_query_exec_mode=exec"
	role   string                // "": a superuser
	dsn    func(s *scene) string // instead of the database of the entry
	stdout func(t testing.TB) *os.File

	meanwhile []step // once it is started

	code int
	outcome
	also    []outcome // of further sweeps
	left    int       // rows that are there afterwards
	others  bool      // somebody else removes or adds rows meanwhile, so that left and what was removed need not add up
	says    []string  // what must be found in the report or on stderr
	lacks   []string
	checked func(s *scene, r report.Report)
}

// anything stands for a count that is not the same each time.
const anything = -1

// outcome is what must become of a sweep.
type outcome struct {
	sweep string      // "": the first of the report
	stop  report.Stop // "": the run must not come so far as a sweep
	by    report.StopBy

	removed, children, held, locked, moved, orphan, stuck, undated, unusable, raised int

	batches int // 0: not looked at
	due     int // of a plan
	thisRun int
}

// process is a run of the command that is under way.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr proctest.Buffer
}

func (p *process) said() string {
	if p == nil {
		return "(no run is under way)"
	}
	return p.stderr.String()
}

// end waits for the process and says its exit code, -1 where a signal ended it.
func (p *process) end(t testing.TB) int {
	t.Helper()
	return proctest.Wait(t, p.cmd, 3*time.Minute)
}

func (r run) do(s *scene) {
	s.t.Helper()
	s.t.Run(r.title(), func(t *testing.T) { r.carryOut(s.in(t)) })
}

func (r run) title() string {
	if r.name != "" {
		return r.name
	}
	return r.arguments()
}

func (r run) arguments() string {
	if r.args == "" {
		return "sweep"
	}
	return r.args
}

func (r run) carryOut(s *scene) {
	t := s.t
	before := s.count()
	p := r.start(s)
	s.now = p
	for _, step := range r.meanwhile {
		step.do(s)
	}
	code := p.end(t)
	left := s.count()
	defer func() {
		if t.Failed() {
			t.Logf("exit code %d\nstdout: %s\nstderr: %s", code, p.stdout.String(), p.stderr.String())
		}
	}()
	if code != r.code {
		t.Errorf("exit code %d instead of %d", code, r.code)
	}
	if left != r.left && r.left != anything {
		t.Errorf("%d rows are left instead of %d", left, r.left)
	}
	text := p.stderr.String() + p.stdout.String()
	unused := code == 2 && p.stdout.String() == "" // a wrong flag: the command did not begin
	if r.reports() && r.stdout == nil && code >= 0 && !unused {
		doc, words := read(t, p.stdout.String())
		if doc == nil {
			return
		}
		text = p.stderr.String() + words
		r.compare(t, doc)
		gone := 0
		for _, sw := range doc.Sweeps {
			gone += sw.Removed + sw.Children
		}
		if !r.others && gone != before-left {
			t.Errorf("the report says that %d rows went; %d are gone", gone, before-left)
		}
		if doc.ExitCode != code {
			t.Errorf("the report says exit code %d; it is %d", doc.ExitCode, code)
		}
		if r.checked != nil && !t.Failed() {
			r.checked(s, *doc)
		}
	}
	for _, w := range r.says {
		if !strings.Contains(text, w) {
			t.Errorf("nothing says %q", w)
		}
	}
	for _, w := range r.lacks {
		if strings.Contains(p.stderr.String()+p.stdout.String(), w) {
			t.Errorf("something says %q", w)
		}
	}
}

// reports tells whether the run ends with a report.
func (r run) reports() bool {
	verb, rest, _ := strings.Cut(r.arguments(), " ")
	return slices.Contains([]string{report.Sweeping, report.Planning, report.Checking}, verb) && !strings.Contains(rest, "-o ") &&
		!strings.Contains(rest, "--help")
}

func (r run) start(s *scene) *process {
	t := s.t
	dir := t.TempDir()
	text := r.file
	if text == "" {
		text = fileOf(r.policy)
	}
	if err := os.WriteFile(filepath.Join(dir, "prunectl.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := strings.Fields(r.arguments())
	if r.reports() {
		args = append(args, "-o", "json")
	}
	p := &process{cmd: exec.Command(s.bin, args...)}
	p.cmd.Dir = dir
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "DATABASE_URL=" + r.connection(s)}, r.env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if r.stdout != nil {
		p.cmd.Stdout = r.stdout(t)
	}
	proctest.Start(t, p.cmd)
	return p
}

func (r run) connection(s *scene) string {
	dsn := s.db.DSN
	switch {
	case r.dsn != nil:
		dsn = r.dsn(s)
	case r.role != "":
		dsn = s.db.DSNAs(r.role)
	}
	return withParams(dsn, r.params)
}

// withParams adds parameters to a connection string.
func withParams(dsn, params string) string {
	for p := range strings.SplitSeq(params, ";") {
		if name, value, ok := strings.Cut(strings.TrimSpace(p), "="); ok {
			dsn += map[bool]string{true: "&", false: "?"}[strings.Contains(dsn, "?")] + name + "=" + strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
		}
	}
	return dsn
}

// compare holds the report against what is wanted.
func (r run) compare(t testing.TB, doc *report.Report) {
	t.Helper()
	if r.stop == "" {
		if len(doc.Sweeps) != 0 || doc.Error == nil {
			t.Errorf("the run came as far as a sweep: %+v, error %v", doc.Sweeps, doc.Error)
		}
		return
	}
	for i, want := range append([]outcome{r.outcome}, r.also...) {
		at := slices.IndexFunc(doc.Sweeps, func(e report.Sweep) bool { return e.Name == want.sweep || want.sweep == "" && i == 0 })
		if at < 0 {
			t.Errorf("the report has no sweep %q", want.sweep)
			continue
		}
		got := doc.Sweeps[at]
		if got.Drained != (got.Stop == report.Drained) {
			t.Errorf("%s: stop %s, drained %v", got.Name, got.Stop, got.Drained)
		}
		is := outcome{
			sweep: want.sweep, stop: got.Stop, by: got.StopBy, removed: got.Removed, held: counted(got.Held), locked: got.Locked, moved: got.Moved,
			orphan: got.Orphan, stuck: got.Stuck, undated: counted(got.Undated), unusable: counted(got.Unusable), raised: got.Raised,
			children: got.Children, batches: got.Batches,
		}
		for _, a := range got.Arms {
			if a.ArmPlan != nil {
				is.due += a.Due
				is.thisRun += a.ThisRun
			}
		}
		if want.removed == anything {
			is.removed = anything // it adds up with the rows that are gone all the same
		}
		if want.moved == anything {
			is.moved = anything
		}
		if want.batches == 0 {
			is.batches = 0
		}
		if is != want {
			t.Errorf("sweep %s\n is %+v\nnot %+v", got.Name, is, want)
		}
	}
}

func counted(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// read reads the one document on stdout, holds it against the published schema, and gathers its texts.
func read(t testing.TB, stdout string) (*report.Report, string) {
	t.Helper()
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(stdout))
	if err != nil {
		t.Errorf("stdout is not one document: %v", err)
		return nil, ""
	}
	schema, err := published()
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(instance); err != nil {
		t.Errorf("the report is not of its schema: %v", err)
	}
	var doc report.Report
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		t.Errorf("the report: %v", err)
		return nil, ""
	}
	var words []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			words = append(words, v)
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(instance)
	return &doc, strings.Join(words, "\n")
}

var published = sync.OnceValues(func() (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	return c.Compile("../../docs/report.schema.json")
})

// count is how many rows the entry counts.
func (s *scene) count() int {
	s.t.Helper()
	return int(s.db.Int(s.t, s.rows))
}

// signal is sent to the run under way.
type signal syscall.Signal

func (sig signal) do(s *scene) {
	s.t.Helper()
	if err := s.now.cmd.Process.Signal(syscall.Signal(sig)); err != nil {
		s.t.Fatalf("%v\nstderr so far: %s", err, s.now.said())
	}
}

// hears waits until the run under way has said something on stderr.
type hears string

func (h hears) do(s *scene) {
	s.t.Helper()
	s.now.stderr.Await(s.t, string(h), time.Minute)
}
