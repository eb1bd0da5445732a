package main

import (
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// TestQuiet is what cron mails: nothing where nobody has to act, else the whole of it.
func TestQuiet(t *testing.T) {
	for _, c := range []struct {
		name   string
		args   string
		policy string
		setup  func(*testing.T, *pgtest.DB)
		code   int
		says   []string // on either stream; none: silence
	}{
		{name: "done", args: "sweep -q"},
		{name: "in front of the command", args: "-q sweep"},
		{name: "plan", args: "plan -q"},
		{name: "ceiling", args: "sweep -q", policy: policyOf(with(jobsSweep, "ceiling: {rows: 10}")), says: []string{"ceiling: rows", "database ", "msg=end"}},
		{name: "more", args: "sweep -q --detailed-exitcode --max-rows 3", code: exitMore, says: []string{"budget: rows", "exit 3"}},
		{name: "refused", args: "sweep -q", policy: policyOf(ghostSweep, jobsSweep), code: exitRefused, says: []string{"ghost: refused: table public.ghosts does not exist", "database ", "1 of 2 sweeps refused (exit 4)"}},
		{name: "stuck", args: "sweep -q", setup: pin, code: exitFailed, says: []string{"jobs: 1 stuck on pins_job_id_fkey from public.pins", "1 of 1 sweep failed (exit 1)"}},
		{name: "check", args: "check -q", setup: analyze},
		{name: "check with a warning", args: "check -q", setup: pin, says: []string{"warning", "pins"}},
		{name: "wrong policy", args: "sweep -q", policy: policyOf(with(jobsSweep, "windw: 3d")), code: exitUsage, says: []string{"windw"}},
		{name: "document", args: "sweep -q -o json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := tables.New(t)
			addJobs(t, db, 30)
			if c.setup != nil {
				c.setup(t, db)
			}
			policy := c.policy
			if policy == "" {
				policy = policyOf(jobsSweep)
			}
			o := invocation{args: strings.Fields(c.args), env: at(db), policy: policy}.run(t).must(t, c.code)
			contains(t, o.both(), c.says...)
			if len(c.says) == 0 && o.both() != "" {
				t.Errorf("printed: %s", o.both())
			}
		})
	}
}

// analyze makes a table of which nothing is to be warned: every listed state occurs in it.
func analyze(t *testing.T, db *pgtest.DB) {
	db.Exec(t, "INSERT INTO jobs (state, finished_at) VALUES ('failed', now()), ('cancelled', now()); ANALYZE jobs")
}
