package main

import (
	"strings"
	"testing"
)

// TestUsage: a wrong word is one line on stderr that says what to write, and exit code 2; nothing is on stdout, least of all
// the help. No server is asked: there is none.
func TestUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "no command is given; write sweep, plan, status, check, events, purge, migrate, demo, or prunectl --help"},
		{"swep", `unknown command "swep"; did you mean sweep?`},
		{"status river", `status takes no arguments, got "river"; write --only river`},
		{"statsu", `unknown command "statsu"; did you mean status?`},
		{"init", `unknown command "init"; write prunectl --help`},
		{"purge", "purge is of one tenant; write --tenant NAME"},
		{"purge acme", `purge takes no arguments, got "acme"; write --tenant "acme"`},
		{"purge --tenant acme tenant", `purge takes no arguments, got "tenant"; write --tenant "tenant"`},
		{"purge --tenant=", "--tenant: it is empty"},
		{"purge --tenant", "--tenant needs a value"},
		{"purge --tenant a --tenant b", "--tenant: it is given twice"},
		{"purge --tenat a", "unknown flag --tenat; did you mean --tenant?"},
		{"purge --tenant a --skip b", "unknown flag --skip; write prunectl purge --help"},
		{"purge --tenant a --yes=no", "--yes takes no value"},
		{"purge --tenant a --yes --count-limit 0", `--count-limit: "0" is no whole number above zero`},
		{"purge --tenant a --yes --max-time 10m", `--max-time: "10m": months have no fixed length and m is read both ways; write min for minutes or count days`},
		{"purge --tenant a --yes", "there is no prunectl.yaml here; name the policy with --policy or PRUNECTL_POLICY"},
		{"help", `unknown command "help"; write prunectl --help`},
		{"sweep river", `sweep takes no arguments, got "river"; write --only river`},
		{"sweep river -o json", `sweep takes no arguments, got "river"; write --only river`},
		{"sweep --only a -- river", `sweep takes no arguments, got "river"; write --only river`},
		{"plan river", `plan takes no arguments, got "river"; write --only river`},
		{"check river", `check takes no arguments, got "river"; write --only river`},
		{"demo now", `demo takes no arguments, got "now"; leave it out`},
		{"sweep postgres://app:hunter2@db/app", "sweep takes no arguments, got a connection string; write --dsn"},
		{"postgres://app:hunter2@db/app", "unknown command a connection string; write prunectl --help"},
		{"sweep --onyl jobs", "unknown flag --onyl; did you mean --only?"},
		{"sweep --windw 90d", "unknown flag --windw; did you mean --window?"},
		{"sweep --metrics-file f", "unknown flag --metrics-file; write prunectl sweep --help"},
		{"sweep -x", "unknown flag -x; write prunectl sweep --help"},
		{"sweep -v", "unknown flag -v; write prunectl sweep --help"},
		{"--polcy f sweep", "unknown flag --polcy; did you mean --policy?"},
		{"plan --count-limt 5", "unknown flag --count-limt; did you mean --count-limit?"},
		{"sweep --only", "--only needs a value"},
		{"sweep --only a,,b", `--only: "a,,b" has an empty name in it; write NAME,NAME`},
		{"sweep --max-time 10m", `--max-time: "10m": months have no fixed length and m is read both ways; write min for minutes or count days`},
		{"sweep --max-time 90", `--max-time: "90" has no unit; write 90d, 90h or 90min`},
		{"sweep --max-time 0s", `--max-time: "0s" is zero; write a duration above zero`},
		{"sweep --max-rows 0", `--max-rows: "0" is no whole number above zero`},
		{"sweep --max-rows -5", `--max-rows: "-5" is no whole number above zero`},
		{"sweep --max-rows abc", `--max-rows: "abc" is no whole number above zero`},
		{"sweep --max-rows 99999999999999999999", `--max-rows: "99999999999999999999" is no whole number above zero`},
		{"plan --count-limit 0", `--count-limit: "0" is no whole number above zero`},
		{"sweep --as-of yesterday", `--as-of: "yesterday" is no time; write it as 2026-11-30T02:17:04Z or 2026-11-30`},
		{"sweep -o yaml", `-o: "yaml" is not known; write table or json`},
		{"--log-format xml check", `--log-format: "xml" is not known; write text or json`},
		{"sweep --busy-ok=perhaps", "--busy-ok takes no value"},
		{"sweep -f a -f b", "-f: it is given twice"},
		{"sweep -f a --policy b", "--policy: it is given twice"},
		{"-f a sweep -f b", "-f: it is given twice"},
		{"migrate", "migrate needs a word; write migrate up, migrate down, migrate status"},
		{"migrate upp", `migrate does not know "upp"; did you mean up?`},
		{"migrate reset", `migrate does not know "reset"; write migrate up, migrate down, migrate status`},
		{"migrate up run_events", `migrate up takes no arguments, got "run_events"; leave it out`},
		{"migrate up --component run_event", `--component: there is no component "run_event"; did you mean run_events?`},
		{"check --component inbox_outbx", `--component: there is no component "inbox_outbx"; did you mean inbox_outbox?`},
		{"check --component inbox_outbox --offline", "--component asks the database, and --offline does not; leave one of them out"},
		{"check --schema app", "--schema is that of --component; a policy file says its schemas itself"},
		{"sweep --yes", "--yes answers what --replace-policy asks; write both, or leave it out"},
		{"plan --replace-policy", "unknown flag --replace-policy; write prunectl plan --help"},
		{"migrate status --print", "unknown flag --print; write prunectl migrate status --help"},
		{"migrate up -o json", "unknown flag -o; write prunectl migrate up --help"},
		{"events", "events needs a word; write events requeue, events replay"},
		{"events requue", `events does not know "requue"; did you mean requeue?`},
		{"events purge", `events does not know "purge"; write events requeue, events replay`},
		{"events requeue 7", `events requeue takes no arguments, got "7"; leave it out`},
		{"events requeue", "events requeue chooses nothing; write --event ID, --receiver NAME or --type NAME, or --all for every dead letter"},
		{"events requeue --limit 5", "events requeue chooses nothing; write --event ID, --receiver NAME or --type NAME, or --all for every dead letter"},
		{"events requeue --all --type paid", "--all leaves nothing to choose; leave it out, or the flags that choose"},
		{"events requeue --all --limit 10001", "--limit: one run reopens 10,000 deliveries at most, in one transaction; run it again for more"},
		{"events requeue --event 0", `--event: "0" is no whole number above zero`},
		{"events requeue --event x", `--event: "x" is no whole number above zero`},
		{"events replay", "events replay is of one event; write --event ID"},
		{"events replay --all", "unknown flag --all; write prunectl events replay --help"},
		{"events --all replay --event 7", "--all means nothing to events replay; leave it out"},
		{"-f x events replay --event 7", "--policy means nothing to events replay; leave it out"},
		{"-f x migrate up", "--policy means nothing to migrate up; leave it out"},
		{"--output json demo", "--output means nothing to demo; leave it out"},
		{"demo --rows 10", "--rows: 10 events show nothing; write 1000 or more"},
		{"demo --keep", "--keep needs --dsn: a server of the demo's own ends with it"},
		{"sweep", "there is no prunectl.yaml here; name the policy with --policy or PRUNECTL_POLICY"},
		{"sweep -f nix.yaml", `the policy file nix.yaml cannot be read: no such file or directory`},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			o := invocation{args: strings.Fields(c.args)}.run(t).must(t, exitUsage)
			if o.stderr != "prunectl: "+c.want+"\n" || o.stdout != "" {
				t.Errorf("stderr: %sstdout: %swant: prunectl: %s", o.stderr, o.stdout, c.want)
			}
		})
	}
}

// TestEmptyVariables: one that is set but empty is a setting that did not arrive.
func TestEmptyVariables(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"PRUNECTL_POLICY=", "PRUNECTL_POLICY is set but empty; give it a value or unset it"},
		{"PRUNECTL_OUTPUT=", "PRUNECTL_OUTPUT is set but empty; give it a value or unset it"},
		{"PRUNECTL_OUTPUT=yaml", `PRUNECTL_OUTPUT: "yaml" is not known; write table or json`},
		{"DATABASE_URL=", "DATABASE_URL is set but empty; give it a value or unset it"},
		{"PGDATABASE=", "PGDATABASE is set but empty; give it a value or unset it"},
	} {
		t.Run(c.set, func(t *testing.T) {
			t.Parallel()
			o := invocation{args: []string{"sweep"}, env: []string{c.set}, policy: policyOf(jobsSweep)}.run(t).must(t, exitUsage)
			if o.stderr != "prunectl: "+c.want+"\n" || o.stdout != "" {
				t.Errorf("stderr: %sstdout: %s", o.stderr, o.stdout)
			}
		})
	}
}

// TestHelp: help is a result: on stdout, with exit code 0. The exit codes stand in each of them, and nothing that a later
// version will have.
func TestHelp(t *testing.T) {
	for _, args := range []string{"--help", "-h", "sweep --help", "plan -h", "status --help", "check --help", "migrate --help", "migrate up --help", "migrate down -h", "migrate status -h", "demo --help", "events -h", "events requeue --help", "events replay --help", "purge --help"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			o := invocation{args: strings.Fields(args), env: []string{"DATABASE_URL=postgres://app:hunter2@db/app"}}.run(t).must(t, exitDone)
			contains(t, o.stdout, "Exit codes:", "130")
			lacks(t, o.both(), "hunter2", "--metrics-file", "init ")
			if o.stderr != "" {
				t.Errorf("stderr: %s", o.stderr)
			}
		})
	}
	for _, args := range []string{"--version", "--version sweep"} {
		if o := (invocation{args: strings.Fields(args)}).run(t).must(t, exitDone); !strings.HasPrefix(o.stdout, "prunectl ") {
			t.Errorf("stdout: %s", o.stdout)
		}
	}
}

// TestSelection: a name that is in no file is refused, with the one that was meant.
func TestSelection(t *testing.T) {
	policy := policyOf(jobsSweep, eventsSweep)
	for _, c := range []struct{ args, want string }{
		{"sweep --only jbs", `--only: prunectl.yaml has no sweep "jbs"; did you mean jobs?`},
		{"plan --skip river", `--skip: prunectl.yaml has no sweep "river"; it has jobs, run_events`},
		{"check --only jobs --skip jobs", "--only and --skip leave no sweep of prunectl.yaml"},
	} {
		o := invocation{args: strings.Fields(c.args), policy: policy}.run(t).must(t, exitUsage)
		if o.stderr != "prunectl: "+c.want+"\n" || o.stdout != "" {
			t.Errorf("stderr: %sstdout: %s", o.stderr, o.stdout)
		}
	}
}
