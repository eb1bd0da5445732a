package migrations

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/domainevents"
	"github.com/prunectl/prunectl/eventlog"
	"github.com/prunectl/prunectl/internal/pgtest"
)

var update = flag.Bool("update", false, "write the golden files of the printed SQL")

// The SQL is a document: what is run is what was reviewed.
func TestThePrintedSQLIsTheReviewedOne(t *testing.T) {
	for _, c := range Components() {
		for _, d := range []Direction{DirectionUp, DirectionDown} {
			got, err := SQL(c, "", d)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", c+"."+string(d)+".sql")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs from what is rendered now; look at the difference, then run with -update\n%s", file, got)
			}
		}
	}
}

func TestThePrintedSQLHasTheDeclaredStates(t *testing.T) {
	text, err := SQL("run_events", "", DirectionUp)
	if err != nil {
		t.Fatal(err)
	}
	var quoted []string
	for _, s := range eventlog.States() {
		quoted = append(quoted, "'"+string(s)+"'")
	}
	if want := "CHECK (status IN (" + strings.Join(quoted, ", ") + "))"; !strings.Contains(text, want) {
		t.Errorf("no %s in\n%s", want, text)
	}

	text, err = SQL("domain_events", "", DirectionUp)
	if err != nil {
		t.Fatal(err)
	}
	quoted = nil
	for _, s := range domainevents.Statuses() {
		quoted = append(quoted, "'"+string(s)+"'")
	}
	if want := "CHECK (status IN (" + strings.Join(quoted, ", ") + "))"; !strings.Contains(text, want) {
		t.Errorf("no %s in\n%s", want, text)
	}
}

func TestThePrintedSQLRunByHandIsWhatUpAndDownDo(t *testing.T) {
	psql := pgtest.Program(t, "psql")
	for _, component := range Components() {
		for _, schema := range []string{"public", `odd "one"; it's --`} {
			db := pgtest.New(t)
			db.Exec(t, `create schema if not exists `+pgx.Identifier{schema}.Sanitize())
			m := migrator(t, db.DSN, inSchema(schema), func(o *Options) { o.Component = component })
			run := func(d Direction) {
				t.Helper()
				text, err := SQL(component, schema, d)
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), psql, "-X", "-v", "ON_ERROR_STOP=1", "-d", db.DSN)
				cmd.Stdin = strings.NewReader(text)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s\n%s", d, err, out, text)
				}
			}
			run(DirectionUp)
			state(t, m, "up to date")
			up(t, m)
			run(DirectionDown)
			state(t, m, "not installed")
			var all []string
			for _, v := range Versions(component) {
				all = append(all, v.String())
			}
			up(t, m, all...)
		}
	}
}

func TestSQLRefusesWhatItDoesNotKnow(t *testing.T) {
	if _, err := SQL("runevents", "", DirectionUp); !errors.Is(err, ErrUnknownComponent) {
		t.Errorf("component: %v", err)
	}
	if _, err := SQL("run_events", "a\nb", DirectionUp); !errors.Is(err, ErrSchema) {
		t.Errorf("schema: %v", err)
	}
	if _, err := SQL("run_events", "", "sideways"); err == nil {
		t.Error("a direction that does not exist was taken")
	}
}
