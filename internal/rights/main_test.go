package rights

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// documented is the role of the document, role the one of the tests.
const (
	documented = "sweeper"
	role       = "rights_sweeper"
)

// entry is a row of the document's table, and how it is tried.
type entry struct {
	row    string // of the document
	as     string // which of the row's entries it is, where it has several
	state  *pgtest.Template
	more   string // SQL on top of the state
	before string // the policy of a sweep that a superuser runs first; "": none
	first  string // the arguments of a run of the role itself, before it; "": none
	policy string // the sweeps, or a whole file; "" for none
	args   string

	other func(right) right // what stands for a right of the document here; nil: itself

	says []string // with all the rights, beside exit code 0

	// without says what comes of the command where one right is missing: its exit code, and what it says.
	without func(r right) (code int, says []string)
	changes string // a query whose answer the whole command changes, and one that refuses does not; "": none does
}

func (e entry) name() string {
	if e.as == "" {
		return e.row
	}
	return e.row + ", " + e.as
}

// TestLeastRights carries the table out.
func TestLeastRights(t *testing.T) {
	d, bin := read(t), build(t)
	pgtest.Role(t, role, "login")
	for _, e := range table {
		t.Run(e.name(), func(t *testing.T) {
			t.Parallel()
			e.carryOut(t, d, bin)
		})
	}
}

// TestEveryRowIsTried: neither has the document what no test tries, nor the tests what nobody can read.
func TestEveryRowIsTried(t *testing.T) {
	d := read(t)
	if len(d.needs) < 10 {
		t.Fatalf("the document has %d rows", len(d.needs))
	}
	named := map[string]bool{}
	for row, blocks := range d.needs {
		if !slices.ContainsFunc(table, func(e entry) bool { return e.row == row }) {
			t.Errorf("nothing tries %q", row)
		}
		for _, b := range blocks {
			named[b] = true
		}
	}
	for _, e := range table {
		if d.needs[e.row] == nil {
			t.Errorf("the document has no row %q", e.row)
		}
	}
	for b := range d.grants {
		if !named[b] {
			t.Errorf("no row needs the block %q", b)
		}
	}
}

func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "prunectl")
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/prunectl/prunectl/cmd/prunectl").CombinedOutput(); err != nil {
		t.Fatalf("build the command: %v\n%s", err, out)
	}
	return bin
}

func (e entry) carryOut(t *testing.T, d document, bin string) {
	all := d.of(t, e.row)
	for i, r := range all {
		if e.other != nil {
			all[i] = e.other(r)
		}
	}
	db := e.database(t, all, bin)
	before := e.look(t, db)
	for _, r := range all {
		db.Exec(t, r.sql(db, "REVOKE", "FROM"))
		code, says := e.without(r)
		if r.kind == "DATABASE" && r.privilege == "CONNECT" {
			code, says = 1, []string{"permission denied for database"}
		}
		got, out := e.run(t, db.DSNAs(role), bin)
		if got != code {
			t.Errorf("without %s the exit code is %d instead of %d\n%s", r, got, code, out)
		}
		for _, s := range says {
			if !strings.Contains(out, s) {
				t.Errorf("without %s nothing says %q\n%s", r, s, out)
			}
		}
		if after := e.look(t, db); after != before {
			t.Errorf("without %s it has done something: %s, and before %s", r, after, before)
			db = e.database(t, all, bin)
		}
		db.Exec(t, r.sql(db, "GRANT", "TO"))
	}
	code, out := e.run(t, db.DSNAs(role), bin)
	if code != 0 {
		t.Errorf("with all of %q the exit code is %d\n%s", all, code, out)
	}
	for _, s := range e.says {
		if !strings.Contains(out, s) {
			t.Errorf("with all of %q nothing says %q\n%s", all, s, out)
		}
	}
	if after := e.look(t, db); e.changes != "" && after == before {
		t.Errorf("with all of %q it has done nothing: %s\n%s", all, after, out)
	}
}

// database is one in the entry's state, in which the role has these rights and no other.
func (e entry) database(t *testing.T, all []right, bin string) *pgtest.DB {
	t.Helper()
	db := e.state.New(t)
	if e.more != "" {
		db.Exec(t, e.more)
	}
	if e.before != "" {
		if code, out := (entry{policy: e.before, args: "sweep"}).run(t, db.DSN, bin); code != 0 {
			t.Fatalf("the first sweep: exit code %d\n%s", code, out)
		}
	}
	// What everybody may is no right that was given: nothing is left of it.
	db.Exec(t, "REVOKE ALL ON DATABASE "+db.Name+" FROM PUBLIC; REVOKE ALL ON SCHEMA public FROM PUBLIC")
	for _, r := range all {
		db.Exec(t, r.sql(db, "GRANT", "TO"))
	}
	if e.first != "" {
		if code, out := (entry{args: e.first}).run(t, db.DSNAs(role), bin); code != 0 {
			t.Fatalf("%s: exit code %d\n%s", e.first, code, out)
		}
	}
	return db
}

// look is the answer of the query of what the command changes.
func (e entry) look(t *testing.T, db *pgtest.DB) string {
	t.Helper()
	if e.changes == "" {
		return ""
	}
	return db.Text(t, e.changes)
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

// run runs the command once, as a person would, and says its exit code and all that it printed.
func (e entry) run(t *testing.T, dsn, bin string) (int, string) {
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
	cmd := exec.CommandContext(ctx, bin, strings.Fields(e.args)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "DATABASE_URL=" + dsn}
	out, err := cmd.CombinedOutput()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}
