package rights

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// command is the built command, shared by the tests that are under way.
var command struct {
	sync.Mutex
	users int
	dir   string
}

// built is the path of the command. It is built for the first test that asks, and removed after the last: who asks before
// t.Parallel shares it with all others. What a debugger needs is left out, which halves the work of the linker.
func built(t *testing.T) string {
	t.Helper()
	command.Lock()
	defer command.Unlock()
	if command.users == 0 {
		dir, err := os.MkdirTemp("", "prunectl-rights-")
		if err != nil {
			t.Fatal(err)
		}
		command.dir = dir
		if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "prunectl"), "github.com/prunectl/prunectl/cmd/prunectl").CombinedOutput(); err != nil {
			_ = os.RemoveAll(dir)
			t.Fatalf("build the command: %v\n%s", err, out)
		}
	}
	command.users++
	t.Cleanup(func() {
		command.Lock()
		defer command.Unlock()
		if command.users--; command.users == 0 {
			_ = os.RemoveAll(command.dir)
		}
	})
	return filepath.Join(command.dir, "prunectl")
}

// place is a database in an entry's state, and one superuser's connection to it: a new one for each of the hundreds of
// statements would cost the server more than all that the command does.
type place struct {
	*pgtest.DB
	super *pgconn.PgConn
}

// make is a database in the entry's state, in which the role has these rights and no other.
func (e entry) make(t *testing.T, all []right, bin string) place {
	t.Helper()
	db := e.state.New(t)
	on := place{db, db.Conn(t).PgConn()}
	if e.more != "" {
		on.ask(t, e.more)
	}
	if e.before != "" {
		if code, out := (entry{policy: e.before}).run(t, "sweep", db.DSN, bin); code != 0 {
			t.Fatalf("the first sweep: exit code %d\n%s", code, out)
		}
	}
	// What everybody may is no right that was given: nothing is left of it.
	sql := []string{"REVOKE ALL ON DATABASE " + db.Name + " FROM PUBLIC", "REVOKE ALL ON SCHEMA public FROM PUBLIC"}
	for _, r := range all {
		sql = append(sql, r.sql(db, "GRANT", "TO"))
	}
	on.ask(t, strings.Join(sql, "; "))
	if e.first != "" {
		if code, out := (entry{}).run(t, e.first, db.DSNAs(role), bin); code != 0 {
			t.Fatalf("%s: exit code %d\n%s", e.first, code, out)
		}
	}
	return on
}

// ask runs SQL as a superuser, and is the first column of a query's one row, else "".
func (on place) ask(t *testing.T, sql string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answers, err := on.super.Exec(ctx, sql).ReadAll()
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	if n := len(answers); n > 0 && len(answers[n-1].Rows) == 1 {
		return string(answers[n-1].Rows[0][0])
	}
	return ""
}

// look is the answer of the query of what the command changes.
func (on place) look(t *testing.T, e entry) string {
	t.Helper()
	if e.changes == "" {
		return ""
	}
	return on.ask(t, e.changes)
}

// sql gives or takes the right in a database of a test.
func (r right) sql(db *pgtest.DB, verb, to string) string {
	what, on := r.privilege, r.on
	if r.column != "" {
		what += " (" + r.column + ")"
	}
	if r.kind == "DATABASE" {
		on = db.Name
	}
	return verb + " " + what + " ON " + r.kind + " " + on + " " + to + " " + role
}

// run runs the command once with the entry's policy, as a person would, and says its exit code and all that it printed.
func (e entry) run(t *testing.T, args, dsn, bin string) (int, string) {
	t.Helper()
	dir := t.TempDir()
	if file := e.policy; file != "" {
		if !strings.Contains(file, "version: 1\n") {
			file = "version: 1\ndefaults: {schema: public}\nsweeps:\n" + file
		}
		if err := os.WriteFile(filepath.Join(dir, "prunectl.yaml"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, strings.Fields(args)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "DATABASE_URL=" + dsn}
	out, err := cmd.CombinedOutput()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}
