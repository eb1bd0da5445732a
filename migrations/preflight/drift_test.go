package preflight

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// drift is a change of what was migrated into the schema odd, and all that is found of
// it. In both, @ is the schema as the server quotes it. All changes are rolled back.
type drift struct {
	name string
	sql  string
	want []string
	// since is the first major version that can do it.
	since int
}

func TestDriftOfRunEvents(t *testing.T) { holds(t, "run_events", driftsOfRunEvents) }

func TestDriftOfDomainEvents(t *testing.T) { holds(t, "domain_events", driftsOfDomainEvents) }

func TestDriftOfConnections(t *testing.T) { holds(t, "connections", driftsOfConnections) }

func holds(t *testing.T, component string, drifts []drift) {
	db := installed[component].New(t)
	db.Exec(t, "create schema aside")
	pgtest.Role(t, "preflight_other", "nologin")
	conn := db.Conn(t)
	major := pgtest.Major(t)
	for _, d := range drifts {
		if d.since <= major {
			t.Run(d.name, func(t *testing.T) { d.hold(t, conn, component) })
		}
	}
}

func (d drift) hold(t *testing.T, conn *pgx.Conn, component string) {
	ctx := bounded(t)
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx) // the next one begins on a connection that is fit or fails
	in := func(s string) string { return strings.ReplaceAll(s, "@", quote(odd)) }
	if d.sql != "" {
		if _, err := tx.Exec(ctx, in(d.sql), pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%v\n%s", err, in(d.sql))
		}
	}
	r := check(t, tx, component, odd)

	var got []string
	refused := false
	for _, f := range r.Findings {
		got = append(got, string(f.Result)+": "+f.what())
		refused = refused || f.Result == Refused
		if f.Do == "" {
			t.Errorf("%s: nothing to do", f.what())
		}
	}
	var want []string
	for _, w := range d.want {
		want = append(want, printable(in(w)))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	state := map[bool]State{false: UpToDate, true: Drift}[refused]
	if r.State != state || errors.Is(r.Err(), ErrDrift) != refused || (r.Err() != nil) != refused {
		t.Errorf("state %s, error %v with findings refused: %t", r.State, r.Err(), refused)
	}
}
