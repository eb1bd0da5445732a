package postgres

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// isolationUpdate names the environment variable that, set to 1, writes the expected outputs anew. They are to be read
// before they are kept; what each order must give stands beside it here and is checked in either case.
const isolationUpdate = "PRUNECTL_UPDATE_ISOLATION"

// isolation is a spec for PostgreSQL's isolationtester, generated from the statements that the engine renders.
type isolation struct {
	name      string
	golden    string // of another spec that must give the same output; "": its own
	tables    string // made once, since a statement holds its table's number
	rows      string // the population, anew for each order
	sweep     policy.Sweep
	gate      bool
	returning bool // counted by RETURNING
	group     bool // the rows of one age, at hour 1
	limit     int  // 0: 50
	edit      func(shape, string) string
	defaults  string // the isolation level that sweeping sessions have by default
	steps     []step // of the other sessions
	orders    []order
}

// step is one of the other sessions' statements.
type step struct{ session, name, sql string }

// order is one permutation: which step follows which, what each batch must count, and what must be left.
type order struct {
	steps string
	why   string
	want  []pruner.Result
	left  string
	waits string // the steps that must wait for another session
	fails string // the error that must come up; "": none may
}

// count is what a batch must count.
func count(examined, removed, held, locked, moved, orphan int) pruner.Result {
	return pruner.Result{Examined: examined, Removed: removed, Held: held, Locked: locked, Moved: moved, Orphan: orphan}
}

// The sweeping steps. One that ends in a bare word is a whole batch as it is sent, from BEGIN to COMMIT; the others are
// its parts, so that another session can act in between.
var sweeping = map[string]struct {
	session string
	mode    pruner.Mode
	lock    time.Duration // lock timeout; 0: longer than any order
}{
	"sweep":  {session: "s"},
	"sweep2": {session: "s2"},
	"skip":   {session: "s", mode: pruner.SkipLocked},
	"hasty":  {session: "s", lock: 50 * time.Millisecond},
	"sb":     {session: "s"}, "batch": {session: "s"}, "sq": {session: "s"}, "sc": {session: "s"}, "sr": {session: "s"},
	"b2": {session: "s2"}, "batch2": {session: "s2"}, "c2": {session: "s2"},
}

// addresses are what stands between the quotes of an array of addresses.
var addresses = regexp.MustCompile(`\(\d+,\d+\)(","\(\d+,\d+\))+`)

const isolationBegin = "BEGIN ISOLATION LEVEL READ COMMITTED; SET CONSTRAINTS ALL IMMEDIATE;"

// sweepingSQL is the text of a sweeping step, and the parts of it that are the engine's, by what they are.
func (s isolation) sweepingSQL(a *Arm, name string) (sql string, ours map[string]string) {
	st := sweeping[name]
	sh := shape{mode: st.mode, group: s.group}
	limit := s.limit
	if limit == 0 {
		limit = 50
	}
	lock := st.lock
	if lock == 0 {
		lock = 2 * time.Minute
	}
	values := map[string]string{
		argCutoff: hour(100), argAfter: timestamptz(a.sweep.Since.UnixMicro()), argLimit: fmt.Sprint(limit), argPassed: "{}",
		argStatementTimeout: millis(5 * time.Minute), argLockTimeout: millis(lock),
	}
	if s.group {
		values[argAfter] = hour(1)
	}
	// The spec language ends a block at a brace, so those of the statement's literals are spelled by number.
	braces := strings.NewReplacer("'{}'", `U&'\007B\007D'`)
	text := func(st statement) string { return braces.Replace(strings.TrimSpace(st.inline(values))) }
	settings, batch, after := text(a.settingsSQL()), text(a.statement(sh)), text(a.afterSQL(sh))
	ours = map[string]string{"settings": settings, "batch": batch, "after": after}
	// The counter goes on through a session's transactions, so only the difference of two readings says anything.
	begin := isolationBegin + "\nSELECT count(set_config('isolation.before', s.deleted::text, true)) AS settings FROM (" + settings + "\n) AS s(statement_timeout, lock_timeout, sync, deleted);"
	whole := batch + ";\nSELECT a.deleted - current_setting('isolation.before')::bigint AS deleted, a.still_there FROM (" + after + "\n) AS a(deleted, xid, still_there);"
	switch name {
	case "sb", "b2":
		return begin, ours
	case "batch", "batch2":
		return whole, ours
	case "sq":
		return "SELECT 1 AS snapshot;", nil
	case "sc", "c2":
		return "COMMIT;", nil
	case "sr":
		return "ROLLBACK;", nil
	}
	return begin + "\n" + whole + "\nCOMMIT;", ours
}

// hour is an age, n hours after the start of 2020.
func hour(n int) string {
	return timestamptz(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Hour).UnixMicro())
}

// spec writes the spec. names has a short name for each of the engine's texts in it.
func (s isolation) spec(a *Arm) (text string, names map[string]string) {
	names = map[string]string{}
	var used []string
	for _, o := range s.orders {
		for _, n := range strings.Fields(o.steps) {
			if !slices.Contains(used, n) {
				used = append(used, n)
			}
		}
	}
	all := slices.Clone(s.steps)
	for _, n := range slices.Sorted(maps.Keys(sweeping)) {
		st := sweeping[n]
		if !slices.Contains(used, n) || slices.ContainsFunc(all, func(have step) bool { return have.name == n }) {
			continue // a counter-example brings its own
		}
		sql, ours := s.sweepingSQL(a, n)
		all = append(all, step{st.session, n, sql})
		for part, text := range ours {
			if st.mode != pruner.Remove || st.lock != 0 {
				part += " of " + n
			}
			if have, ok := names[text]; !ok || len(part) < len(have) { // the plain name, where two steps share the text
				names[text] = part
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "setup { %s }\n", s.rows)
	for _, session := range []string{"u", "s", "s2", "h", "l"} {
		var steps []string
		for _, st := range all {
			if st.session == session && slices.Contains(used, st.name) {
				steps = append(steps, fmt.Sprintf("step %s { %s }\n", st.name, st.sql))
			}
		}
		if len(steps) == 0 {
			continue
		}
		slices.Sort(steps)
		fmt.Fprintf(&b, "session %s\n", session)
		if strings.HasPrefix(session, "s") && s.defaults != "" {
			fmt.Fprintf(&b, "setup { SET default_transaction_isolation = '%s'; }\n", s.defaults)
		}
		b.WriteString(strings.Join(steps, ""))
	}
	for _, o := range s.orders {
		fmt.Fprintf(&b, "permutation %s\n", o.steps)
	}
	return b.String(), names
}

// run runs the spec and returns the output of each order.
func (s isolation) run(t *testing.T) []string {
	t.Helper()
	tester := isolationTester(t)
	db := pgtest.New(t)
	db.Exec(t, s.tables)
	arms, err := Open(t.Context(), Conn(db.Conn(t)), s.sweep, Options{OneSweeper: s.gate})
	if err != nil {
		t.Fatal(err)
	}
	a := arms[0]
	a.edit = s.edit
	if s.returning {
		table := *a.table
		table.statistics = false
		a.table = &table
	}
	text, names := s.spec(a)
	return runSpec(t, tester, db, text, names, len(s.orders))
}

// check holds the output of one order against what it must give.
func (s isolation) check(o order, out string) error {
	counts, left, err := s.read(out)
	if err != nil {
		return err
	}
	return o.check(out, counts, left)
}

// read takes the answers of the batches out of an output and has the engine count them.
func (s isolation) read(out string) (counts []pruner.Result, left string, err error) {
	a := &Arm{target: target{table: &table{}}}
	var answers []answer
	var mode pruner.Mode
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "step ") {
			mode = pruner.Remove
			if strings.HasPrefix(line, "step skip:") {
				mode = pruner.SkipLocked
			}
		}
		head := fields(line)
		if len(head) == 0 || i+2 >= len(lines) || !strings.HasPrefix(lines[i+1], "--") && !strings.HasPrefix(lines[i+1], "-+") {
			continue
		}
		row := fields(lines[i+2])
		switch head[0].text {
		case "examined":
			answers = []answer{{{}, {}, {}, {text: "0"}}, row}
		case "deleted":
			if len(answers) != 2 {
				return nil, "", errors.New("an answer without its batch")
			}
			res, _, _, err := a.count(append(answers, answer{row[0], {}, row[1]}), shape{mode: mode, group: s.group})
			if err != nil {
				return nil, "", err
			}
			counts = append(counts, res)
			answers = nil
		case "left":
			left = row[0].text
		}
	}
	return counts, left, nil
}

// waiting names the steps that had to wait for another session.
func waiting(out string) string {
	var names []string
	name := ""
	for line := range strings.SplitSeq(out, "\n") {
		if rest, ok := strings.CutPrefix(line, "step "); ok {
			name, _, _ = strings.Cut(rest, ":")
		}
		if strings.HasSuffix(line, "<waiting ...>") {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// fields cuts a line of a result into its columns.
func fields(line string) answer {
	var a answer
	for f := range strings.SplitSeq(line, "|") {
		f = strings.TrimSpace(f)
		a = append(a, field{text: f, null: f == ""})
	}
	return a
}

// test runs the spec, checks every order and compares the whole with the expected output.
func (s isolation) test(t *testing.T) {
	holdOrders(t, s.name, s.golden, s.orders, s.run(t), s.check)
}
