package main

import (
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/prunectl/prunectl/internal/report"
)

// TestPurgeAsked runs the command on a terminal: it shows what would go and wants the tenant's name typed, letter by letter.
func TestPurgeAsked(t *testing.T) {
	const question = "type the tenant's name to remove these rows for ever: "
	for _, c := range []struct {
		name, tenant, answer string
		args                 []string
		code                 int
		stop                 report.Stop
	}{
		{"the name", "acme", "acme\n", nil, exitDone, report.Purged},
		{"in silence", "acme", "acme\n", []string{"-q"}, exitDone, report.Purged},
		{"with a blank", "acme ", "acme \n", nil, exitDone, report.Purged},
		{"that looks like SQL", sqlTenant, sqlTenant + "\n", nil, exitDone, report.Purged},
		{"without its blank", "acme ", "acme\n", nil, exitRefused, report.Declined},
		{"with a blank too many", "acme", "acme \n", nil, exitRefused, report.Declined},
		{"in another case", "acme", "ACME\n", nil, exitRefused, report.Declined},
		{"yes", "acme", "yes\n", nil, exitRefused, report.Declined},
		{"nothing", "acme", "\n", nil, exitRefused, report.Declined},
		{"the end", "acme", "\x04", nil, exitRefused, report.Declined},
		{"the end behind the name", "acme", "acme\x04\x04", nil, exitRefused, report.Declined},
		{"a signal", "acme", "", nil, exitSignal + int(syscall.SIGTERM), report.Signal},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := tenants.New(t)
			addTenants(t, db)
			others, before := othersRows(t, db, c.tenant), tenantRows(t, db, c.tenant)
			terminal, slave := openTerminal(t)
			r := invocation{args: append([]string{"purge", "--tenant", c.tenant, "-o", "json"}, c.args...), env: append(at(db), "TERM=xterm"), policy: purgesOf(tenantPurge), stdin: slave, stderr: slave}.start(t)
			_ = slave.Close()
			var shown locked
			var read sync.WaitGroup
			read.Go(func() { _, _ = io.Copy(&shown, terminal) })
			eventually(t, "it asks", func() bool { return strings.Contains(shown.String(), question) })
			contains(t, shown.String(), "database "+db.Name, "are to go from these tables:", "public.run_events   tenant_id", "excluded: kept for ten years by law")
			if got := tenantRows(t, db, c.tenant); got != before {
				t.Errorf("%d of %d rows are left before the answer", got, before)
			}
			if c.answer == "" {
				r.signal(syscall.SIGTERM)
			} else if _, err := terminal.WriteString(c.answer); err != nil {
				t.Fatal(err)
			}
			o := r.wait()
			read.Wait()
			if o.code != c.code {
				t.Fatalf("exit code %d instead of %d\n%s%s", o.code, c.code, o.stdout, shown.String())
			}
			left := before
			if c.stop == report.Purged {
				left = 0
			}
			if got := tenantRows(t, db, c.tenant); got != left {
				t.Errorf("%d rows are left instead of %d", got, left)
			}
			if got := othersRows(t, db, c.tenant); got != others {
				t.Errorf("the rows of others were %s and are %s", others, got)
			}
			if o.stdout == "" { // with -q, and all is well
				return
			}
			if p := purgeOf(t, o.document(t)); p.Stop != c.stop || p.Started != nil && c.stop != report.Purged {
				t.Errorf("%+v", p)
			}
			if c.stop == report.Declined {
				contains(t, shown.String(), "purge tenant declined (exit 4)")
			}
		})
	}
	// Who cannot see the question is not asked.
	_, slave := openTerminal(t)
	o := invocation{args: strings.Fields("purge --tenant acme"), policy: purgesOf(tenantPurge), stdin: slave}.run(t).must(t, exitUsage)
	contains(t, o.stderr, "there is no terminal to type it on")
	_ = slave.Close()
	// Neither is a name asked for that no terminal takes.
	terminal, slave := openTerminal(t)
	r := invocation{args: []string{"purge", "--tenant", "ac\nme"}, policy: purgesOf(tenantPurge), stdin: slave, stderr: slave}.start(t)
	_ = slave.Close()
	shown, _ := io.ReadAll(terminal)
	r.wait().must(t, exitUsage)
	contains(t, string(shown), `purge asks for the tenant's name, and "ac\nme" cannot be typed on a terminal; write --yes`)
}

// TestPurgeLive: on a terminal one line is redrawn.
func TestPurgeLive(t *testing.T) {
	db := tenants.New(t)
	addTenant(t, db, "acme", 60)
	slowPurge(t, db, "run_events", 5)
	terminal, slave := openTerminal(t)
	r := invocation{args: strings.Fields("purge --tenant acme --yes"), env: append(at(db), "TERM=xterm"), policy: purgesOf(tenantPurge + "    batch: {limit: 50}\n"), stderr: slave}.start(t)
	_ = slave.Close()
	shown, _ := io.ReadAll(terminal)
	contains(t, r.wait().must(t, exitDone).stdout, `purged "acme": 480 rows of 5 tables`)
	contains(t, string(shown), "[1/5] public.run_events", "removed", "batch of 50 in")
	lacks(t, string(shown), "msg=")
}
