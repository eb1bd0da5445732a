package main

import (
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// TestNoSweeps: a file that has only purges is none for the commands that sweep; it can be checked.
func TestNoSweeps(t *testing.T) {
	policy := purgesOf(tenantPurge)
	for args, want := range map[string]string{
		"sweep":  "prunectl.yaml has no sweeps; what it has are purges, and prunectl purge --tenant NAME carries them out",
		"plan":   "prunectl.yaml has no sweeps; what it has are purges, and prunectl purge --tenant NAME carries them out",
		"status": "prunectl.yaml has no sweeps; what it has are purges, and prunectl purge --tenant NAME carries them out",
	} {
		if o := (invocation{args: []string{args}, policy: policy}).run(t).must(t, exitUsage); o.stderr != "prunectl: "+want+"\n" || o.stdout != "" {
			t.Errorf("%s: %s%s", args, o.stdout, o.stderr)
		}
	}
	if o := (invocation{args: strings.Fields("check --offline"), policy: policy}).run(t).must(t, exitDone); o.stdout != "0 sweeps and 1 purge read, no fault found; the database was not asked\n" {
		t.Error(o.stdout)
	}
}

// TestCheckPurges: a check says of a purge all that does not hang on the tenant, and refuses it, beside the sweeps.
func TestCheckPurges(t *testing.T) {
	db := tables.New(t)
	db.Exec(t, "CREATE TABLE runs_of (tenant_id text, id int, PRIMARY KEY (tenant_id, id)); CREATE TABLE events_of (tenant_id text, id int, PRIMARY KEY (tenant_id, id), FOREIGN KEY (tenant_id, id) REFERENCES runs_of); CREATE TABLE logs_of (org text)")
	const right = "  right: {key: tenant_id, tables: [{table: events_of}, {table: runs_of}]}\n"
	const wrong = "  wrong: {key: tenant_id, tables: [{table: runs_of}, {table: events_of}]}\n"
	const slow = "  slow: {tables: [{table: logs_of, column: org}]}\n"
	for _, c := range []struct {
		name, args, policy string
		code               int
		says               []string
		purges             string // name and stop of each
		sweeps             int
	}{
		{"purges alone", "", purgesOf(right), exitDone, []string{"0 of 1 purge refused"}, "right checked", 0},
		{"a wrong order", "", purgesOf(wrong, right), exitRefused, []string{"1 of 2 purges refused", "public.events_of refers to public.runs_of", "(prunectl.yaml:4:", "tables in this order: public.events_of, public.runs_of"}, "wrong refused; right checked", 0},
		{"beside a sweep", "", policyOf(jobsSweep) + "purges:\n" + wrong, exitRefused, []string{"0 of 1 sweep refused", "1 of 1 purge refused"}, "wrong refused", 1},
		{"only the sweep", "--only jobs", policyOf(jobsSweep) + "purges:\n" + wrong, exitDone, []string{"0 of 1 sweep refused"}, "", 1},
		{"only one purge", "--only right", policyOf(jobsSweep) + "purges:\n" + wrong + right, exitDone, []string{"0 of 1 purge refused"}, "right checked", 0},
		{"all but one", "--skip wrong", policyOf(jobsSweep) + "purges:\n" + wrong + right, exitDone, []string{"0 of 1 purge refused"}, "right checked", 1},
		{"a name of nothing", "--only wright", policyOf(jobsSweep) + "purges:\n" + wrong + right, exitUsage, []string{`--only: prunectl.yaml has no sweep or purge "wright"; did you mean right?`}, "", 0},
		{"nothing is left", "--skip wrong", purgesOf(wrong), exitUsage, []string{"--only and --skip leave no purge of prunectl.yaml"}, "", 0},
		{"a warning", "", purgesOf(slow), exitDone, []string{"no index of public.logs_of leads with org", `CREATE INDEX CONCURRENTLY ON "public"."logs_of" ("org");`}, "slow checked", 0},
		{"a warning, strictly", "--strict", purgesOf(slow), exitRefused, []string{"1 of 1 purge refused"}, "slow refused", 0},
		{"a file alone", "--offline", purgesOf(right, wrong), exitDone, []string{"0 sweeps and 2 purges read, no fault found; the database was not asked"}, "right checked; wrong checked", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := invocation{args: strings.Fields("check " + c.args), env: at(db), policy: c.policy}
			contains(t, in.run(t).must(t, c.code).both(), c.says...)
			in.args = append(in.args, "-o", "json")
			doc := in.run(t).must(t, c.code).document(t)
			var got []string
			for _, p := range doc.Purges {
				got = append(got, p.Name+" "+string(p.Stop))
			}
			if strings.Join(got, "; ") != c.purges || len(doc.Sweeps) != c.sweeps {
				t.Errorf("purges %q, %d sweeps", got, len(doc.Sweeps))
			}
		})
	}
	// Who may read nothing is told what it lacks, and what cannot be said of one purge does not keep the others from being said.
	pgtest.Role(t, "command_checker", "login")
	o := invocation{args: []string{"check"}, env: []string{"DATABASE_URL=" + db.DSNAs("command_checker")}, policy: purgesOf(right, slow)}.run(t).must(t, exitRefused)
	contains(t, o.stdout, "2 of 2 purges refused", "GRANT SELECT ON \"public\".\"runs_of\"", "GRANT SELECT ON \"public\".\"logs_of\"")
	contains(t, o.stderr, "2 of 2 purges refused (exit 4)")
	o = invocation{args: []string{"check", "-q"}, env: at(db), policy: purgesOf(right)}.run(t).must(t, exitDone)
	if o.both() != "" {
		t.Errorf("nothing is to be warned of, and it says:\n%s", o.both())
	}
	o = invocation{args: []string{"check", "-q"}, env: at(db), policy: purgesOf(slow)}.run(t).must(t, exitDone)
	contains(t, o.stdout, "no index of public.logs_of")
}
