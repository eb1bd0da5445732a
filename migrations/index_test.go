package migrations

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// A build that died leaves an index of the right name that the planner never uses.
func TestAnIndexMarkedInvalidIsSeenAndRebuilt(t *testing.T) {
	for name, recorded := range map[string]bool{"recorded": true, "not recorded": false} {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			db.Exec(t, fill)
			db.Exec(t, `update pg_index set indisvalid = false where indexrelid = 'run_events_retention'::regclass`)
			m := migrator(t, db.DSN)
			if recorded {
				s := state(t, m, "damaged: index run_events_retention is not valid")
				if len(s.Faults) != 1 {
					t.Errorf("faults %q", s.Faults)
				}
			} else {
				db.Exec(t, `delete from prunectl_run_events_migrations where version = 2`)
				state(t, m, "pending: 2 add_retention_index")
			}
			if done := up(t, m, "2 add_retention_index"); !done[0].Rebuilt {
				t.Error("not said to be rebuilt")
			}
			if n := db.Int(t, validity); n != 1 {
				t.Errorf("validity %d", n)
			}
			state(t, m, "up to date")
		})
	}
}

func TestALostIndexIsSeenAndRebuilt(t *testing.T) {
	db := installed.New(t)
	db.Exec(t, `drop index run_events_retention`)
	m := migrator(t, db.DSN)
	state(t, m, "damaged: index run_events_retention is missing")
	if done := up(t, m, "2 add_retention_index"); !done[0].Rebuilt {
		t.Error("not said to be rebuilt")
	}
	state(t, m, "up to date")
}

// Killed between the end of the build and its record.
func TestAFinishedBuildIsRecordedAndNotRepeated(t *testing.T) {
	db := installed.New(t)
	before := db.Int(t, `select 'run_events_retention'::regclass::oid::bigint`)
	db.Exec(t, `delete from prunectl_run_events_migrations where version = 2`)
	m := migrator(t, db.DSN)
	if done := up(t, m, "2 add_retention_index"); done[0].Rebuilt {
		t.Error("said to be rebuilt")
	}
	if after := db.Int(t, `select 'run_events_retention'::regclass::oid::bigint`); after != before {
		t.Error("it was built again")
	}
	state(t, m, "up to date")
}

// What a database's keeper tunes is no other definition.
func TestStorageParametersOfAnIndexAreTheirs(t *testing.T) {
	db := installed.New(t)
	db.Exec(t, `alter index run_events_retention set (fillfactor = 70)`)
	m := migrator(t, db.DSN)
	state(t, m, "up to date")
	up(t, m)
}

func TestSomethingElseOfTheIndexsNameIsRefusedAndLeftAlone(t *testing.T) {
	for name, make := range map[string]string{
		"other columns":   `create index run_events_retention on run_events (created_at, tenant_id, run_id)`,
		"other order":     `create index run_events_retention on run_events (tenant_id, run_id, sequence, created_at)`,
		"descending":      `create index run_events_retention on run_events (created_at desc, tenant_id, run_id, sequence)`,
		"collation":       `create index run_events_retention on run_events (created_at, tenant_id collate "C", run_id, sequence)`,
		"operator class":  `create index run_events_retention on run_events (created_at, tenant_id text_pattern_ops, run_id, sequence)`,
		"included column": `create index run_events_retention on run_events (created_at, tenant_id, run_id) include (sequence)`,
		"partial":         `create index run_events_retention on run_events (created_at, tenant_id, run_id, sequence) with (fillfactor = 90) where sequence > 5`,
		"unique":          `create unique index run_events_retention on run_events (created_at, tenant_id, run_id, sequence)`,
		"method":          `create index run_events_retention on run_events using brin (created_at, tenant_id, run_id, sequence)`,
		"other table":     `create table t (created_at timestamptz, tenant_id text, run_id text, sequence bigint); create index run_events_retention on t (created_at, tenant_id, run_id, sequence)`,
		"a table":         `create table run_events_retention ()`,
		"invalid, of another definition": `create index run_events_retention on run_events (created_at);
			update pg_index set indisvalid = false where indexrelid = 'run_events_retention'::regclass`,
	} {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			db.Exec(t, `drop index run_events_retention`)
			db.Exec(t, make)
			before := db.Int(t, `select oid::bigint from pg_class where relname = 'run_events_retention'`)
			m := migrator(t, db.DSN)

			for _, recorded := range []bool{true, false} {
				if !recorded {
					db.Exec(t, `delete from prunectl_run_events_migrations where version = 2`)
				}
				if _, err := m.Up(bounded(t)); !errors.Is(err, ErrIndexDiffers) || !strings.Contains(err.Error(), "nothing was dropped") {
					t.Errorf("up, recorded %t: %v", recorded, err)
				}
				if after := db.Int(t, `select oid::bigint from pg_class where relname = 'run_events_retention'`); after != before {
					t.Fatal("it was replaced")
				}
				if recorded {
					if _, err := m.Down(bounded(t)); !errors.Is(err, ErrIndexDiffers) {
						t.Errorf("down: %v", err)
					}
					s, err := m.Status(bounded(t))
					if err != nil || !strings.Contains(s.State, "and not the declared btree (created_at, tenant_id, run_id, sequence) on run_events") {
						t.Errorf("status %q, %v", s.State, err)
					}
				}
			}
			if n := db.Int(t, `select count(*) from prunectl_run_events_migrations where version = 2`); n != 0 {
				t.Error("success was recorded")
			}
		})
	}
}

// The record itself looks, whatever was done before it.
func TestAVersionIsNotRecordedOverAnInvalidIndex(t *testing.T) {
	db := installed.New(t)
	db.Exec(t, `delete from prunectl_run_events_migrations where version = 2`)
	db.Exec(t, `update pg_index set indisvalid = false where indexrelid = 'run_events_retention'::regclass`)
	m := migrator(t, db.DSN)
	// Whoever prepares nothing meets IF NOT EXISTS, which skips the build.
	provider, _, err := m.provider(nothing)
	if err != nil {
		t.Fatal(err)
	}
	_, err = provider.ApplyVersion(bounded(t), 2, true)
	if err == nil || !strings.Contains(err.Error(), "not recorded: index run_events_retention is not valid") {
		t.Errorf("apply: %v", err)
	}
	if n := db.Int(t, `select count(*) from prunectl_run_events_migrations where version = 2`); n != 0 {
		t.Error("success was recorded")
	}
}

// The index is declared once: what the SQL builds is what the declaration says.
func TestEveryDeclaredIndexIsBuiltByItsVersion(t *testing.T) {
	for component, db := range map[string]*pgtest.DB{"run_events": installed.New(t), "domain_events": withEvents.New(t), "connections": withConnections.New(t)} {
		m := migrator(t, db.DSN, func(o *Options) { o.Component = component })
		declared := Indexes(component)
		if len(declared) == 0 {
			t.Fatal("none is declared")
		}
		for _, x := range declared {
			f, err := lookUp(t.Context(), m.db, "public", x)
			if err != nil {
				t.Fatal(err)
			}
			if fault := f.fault(x); fault != "" {
				t.Error(fault)
			}
		}
	}
	if Indexes("nothing") != nil || Versions("nothing") != nil {
		t.Error("an unknown component has something")
	}
	for component, want := range map[string][]string{
		"run_events":    {"1 create_tables", "2 add_retention_index"},
		"domain_events": {"1 create_tables", "2 add_indexes"},
		"connections":   {"1 create_table"},
	} {
		var all []string
		for _, v := range Versions(component) {
			all = append(all, v.String())
		}
		equal(t, "versions", all, want)
	}
}

// A predicate is part of the definition.
func TestAnIndexWithAnotherPredicateIsRefused(t *testing.T) {
	for name, make := range map[string]string{
		"none":                         `create index domain_events_parked on domain_events (recorded_at, id)`,
		"another":                      `create index domain_events_parked on domain_events (recorded_at, id) where not parked`,
		"a narrower one":               `create index domain_events_parked on domain_events (recorded_at, id) where parked and type = 'x'`,
		"another, with a fill factor":  `create index domain_events_parked on domain_events (recorded_at, id) with (fillfactor = 90) where not parked`,
		"none, and a column too many":  `create index domain_events_parked on domain_events (recorded_at, id, parked)`,
		"the one, and another column":  `create index domain_events_parked on domain_events (recorded_at, type) where parked`,
		"the one, on a column less":    `create index domain_events_parked on domain_events (recorded_at) where parked`,
		"the one, on included columns": `create index domain_events_parked on domain_events (recorded_at, id) include (type) where parked`,
	} {
		t.Run(name, func(t *testing.T) {
			db := withEvents.New(t)
			db.Exec(t, `drop index domain_events_parked`)
			db.Exec(t, make)
			m := migrator(t, db.DSN, ofEvents)
			if _, err := m.Up(bounded(t)); !errors.Is(err, ErrIndexDiffers) || !strings.Contains(err.Error(), "the declared btree (recorded_at, id) on domain_events where parked") {
				t.Errorf("up: %v", err)
			}
		})
	}
	t.Run("the one, with a fill factor", func(t *testing.T) {
		db := withEvents.New(t)
		db.Exec(t, `drop index domain_events_parked`)
		db.Exec(t, `create index domain_events_parked on domain_events (recorded_at, id) with (fillfactor = 90) where parked`)
		up(t, migrator(t, db.DSN, ofEvents))
	})
}

// A build that somebody else has under way is not taken for a dead one.
func TestABuildByHandIsNotDropped(t *testing.T) {
	db := installed.New(t)
	db.Exec(t, `drop index run_events_retention`)
	db.Exec(t, `delete from prunectl_run_events_migrations where version = 2`)
	writer := db.Conn(t)
	tx := holdOpen(t, writer)

	byHand := make(chan error, 1)
	builder := db.Conn(t)
	pid := builder.PgConn().PID()
	go func() {
		_, err := builder.Exec(bounded(t), `create index concurrently run_events_retention on run_events (created_at, tenant_id, run_id, sequence)`)
		byHand <- err
	}()
	watch := db.Conn(t)
	until(t, watch, "the build waits for the writer", building)

	_, err := migrator(t, db.DSN).Up(bounded(t))
	if err == nil || !strings.Contains(err.Error(), "is being built by pid") {
		t.Errorf("up beside pid %d: %v", pid, err)
	}
	end(t, tx)
	if err := <-byHand; err != nil {
		t.Fatalf("the build by hand: %v", err)
	}
	up(t, migrator(t, db.DSN), "2 add_retention_index")
}

// holdOpen begins a transaction that has written an event, which a concurrent
// build must wait for.
func holdOpen(t *testing.T, conn *pgx.Conn) pgx.Tx {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = tx.Exec(t.Context(), `insert into public.run_events (tenant_id, run_id, sequence, type, event) values ('open', 'r', 1, 'x', '{}')`)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func end(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// building is the pid of a session that waits for others within the build of the
// retention index, whose entry in the catalog is there by then.
const building = `
select coalesce((select max(a.pid) from pg_stat_activity a
                  where a.datname = current_database() and a.wait_event_type = 'Lock'
                    and a.query ilike '%create index concurrently%run_events_retention%'
                    and exists (select from pg_index i where i.indexrelid = to_regclass('public.run_events_retention') and not i.indisvalid)), 0)`
