package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/pgserver"
	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/pruner"
)

// isolationTester is the program that runs specs.
func isolationTester(t *testing.T) string {
	t.Helper()
	tester, err := pgserver.FindProgram("isolationtester")
	if err != nil {
		how := "no isolationtester: Debian's postgresql-client-NN brings it, as do other packages with the files for building extensions; or set " + pgserver.EnvBinDir
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s: %v", how, err)
		}
		t.Skipf("%s: %v", how, err)
	}
	return tester
}

// runSpec runs a spec and returns the output of each order. The engine's texts are named in it and not repeated: they have
// golden copies of their own, and hold the number of a table.
func runSpec(t *testing.T, tester string, db *pgtest.DB, text string, names map[string]string, orders int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, tester, db.DSN)
	cmd.Stdin = strings.NewReader(text)
	cmd.Env = append(os.Environ(), "PGISOLATIONTIMEOUT=60")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		t.Fatalf("isolationtester: %v\n%s\n%s", err, out, text)
	}
	got := string(out)
	for text, name := range names {
		got = strings.ReplaceAll(got, text, "<"+name+">")
	}
	got = addresses.ReplaceAllStringFunc(got, func(list string) string { // a set, in the order of a hash
		tids := strings.Split(list, `","`)
		slices.Sort(tids)
		return strings.Join(tids, `","`)
	})
	parts := strings.Split(got, "\nstarting permutation: ")
	if len(parts) != orders+1 {
		t.Fatalf("%d orders gave %d outputs:\n%s", orders, len(parts)-1, got)
	}
	return parts[1:]
}

// check holds the output of one order, what its batches counted and what is left, against what it must give.
func (o order) check(out string, counts []pruner.Result, left string) error {
	switch {
	case o.fails == "" && strings.Contains(out, "ERROR:"):
		return errors.New("an error came up")
	case !strings.Contains(out, o.fails):
		return fmt.Errorf("no error %q came up", o.fails)
	case waiting(out) != o.waits:
		return fmt.Errorf("%q waited, not %q", waiting(out), o.waits)
	case left != o.left:
		return fmt.Errorf("%q is left, not %q", left, o.left)
	case len(counts) != len(o.want):
		return fmt.Errorf("%d batches answered, not %d", len(counts), len(o.want))
	}
	for i, want := range o.want {
		got := counts[i]
		got.Blocked, got.Next, got.End, got.Busy = nil, pruner.Cursor{}, false, false
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("batch %d counted %+v, not %+v", i+1, got, want)
		}
	}
	return nil
}

// holdOrders checks every order of a spec and compares the whole with the expected output: its own, or that of another spec,
// which must give the same.
func holdOrders(t *testing.T, name, golden string, orders []order, outs []string, check func(order, string) error) {
	t.Helper()
	for i, o := range orders {
		if err := check(o, outs[i]); err != nil {
			t.Errorf("%s (%s): %v\n%s", o.steps, o.why, err, outs[i])
		}
	}
	own := golden == ""
	if own {
		golden = name
	}
	file := filepath.Join("testdata", "isolation", "expected", golden+".out")
	got := "starting permutation: " + strings.Join(outs, "\nstarting permutation: ")
	if os.Getenv(isolationUpdate) == "1" && own {
		if t.Failed() {
			t.Fatal("not written: it is not what it must be")
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("another output than %s:\n%s", file, got)
	}
}

// readBatches takes the answers of the batches of the sessions s and t out of an output, in the order in which they end, and
// has the engine count them, n answers a batch. sessionOf says whose a step is, and whether a batch begins with it; isLeft
// tells the row that says what is left.
func readBatches(out string, n int, sessionOf func(step string) (session string, begins bool), isLeft func(head answer, session string) bool,
	count func([]answer) (pruner.Result, error),
) (counts []pruner.Result, left string, err error) {
	answers := map[string][]answer{}
	session := ""
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		if name, ok := strings.CutPrefix(line, "step "); ok {
			name, _, _ = strings.Cut(name, ":")
			var begins bool
			if session, begins = sessionOf(name); begins && !strings.Contains(line, "completed>") {
				answers[session] = nil
			}
		}
		head := fields(line)
		if i+2 >= len(lines) || !strings.HasPrefix(lines[i+1], "--") && !strings.HasPrefix(lines[i+1], "-+") || strings.HasPrefix(line, "--") {
			continue
		}
		row := fields(lines[i+2])
		switch {
		case isLeft(head, session):
			left = row[0].text
			continue
		case session != "s" && session != "t":
			continue
		}
		answers[session] = append(answers[session], row)
		if len(answers[session]) == n {
			res, err := count(answers[session])
			if err != nil {
				return nil, "", err
			}
			counts = append(counts, res)
		}
	}
	return counts, left, nil
}
