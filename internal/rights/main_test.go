package rights

import (
	"slices"
	"strings"
	"testing"

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
	also   []string // the arguments of what refuses as it does, and never changes anything

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

// TestLeastRights carries the table out; with -short one entry of each row, and without one right of each.
func TestLeastRights(t *testing.T) {
	d, bin := read(t), built(t)
	pgtest.Role(t, role, "login")
	t.Parallel()
	tried := map[string]bool{}
	for _, e := range table {
		if testing.Short() && tried[e.row] {
			continue
		}
		tried[e.row] = true
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

func (e entry) carryOut(t *testing.T, d document, bin string) {
	all := d.of(t, e.row)
	for i, r := range all {
		if e.other != nil {
			all[i] = e.other(r)
		}
	}
	on := e.make(t, all, bin)
	before := on.look(t, e)
	commands := append(slices.Clone(e.also), e.args)
	for i, r := range all {
		if testing.Short() && i < len(all)-1 {
			continue
		}
		on.ask(t, r.sql(on.DB, "REVOKE", "FROM"))
		code, says := e.without(r)
		if r.kind == "DATABASE" && r.privilege == "CONNECT" {
			code, says = 1, []string{"permission denied for database"}
		}
		for _, args := range commands {
			got, out := e.run(t, args, on.DSNAs(role), bin)
			if got != code {
				t.Errorf("%s: without %s the exit code is %d instead of %d\n%s", args, r, got, code, out)
			}
			for _, s := range says {
				if strings.HasSuffix(args, "-o json") {
					s = strings.ReplaceAll(s, `"`, `\"`)
				}
				if !strings.Contains(out, s) {
					t.Errorf("%s: without %s nothing says %q\n%s", args, r, s, out)
				}
			}
			if after := on.look(t, e); after != before {
				t.Fatalf("%s: without %s it has done something: %s, and before %s", args, r, after, before)
			}
		}
		on.ask(t, r.sql(on.DB, "GRANT", "TO"))
	}
	for _, args := range commands {
		code, out := e.run(t, args, on.DSNAs(role), bin)
		if code != 0 {
			t.Errorf("%s: with all of %q the exit code is %d\n%s", args, all, code, out)
		}
		if args != e.args {
			if after := on.look(t, e); after != before {
				t.Errorf("%s: it has done something: %s, and before %s", args, after, before)
			}
			continue
		}
		for _, s := range e.says {
			if !strings.Contains(out, s) {
				t.Errorf("%s: with all of %q nothing says %q\n%s", args, all, s, out)
			}
		}
		if after := on.look(t, e); e.changes != "" && after == before {
			t.Errorf("%s: with all of %q it has done nothing: %s\n%s", args, all, after, out)
		}
	}
}
