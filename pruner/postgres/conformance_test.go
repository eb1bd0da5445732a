package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/prunertest"
)

var execModes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}

func mode(m pgx.QueryExecMode) func(*pgx.ConnConfig) {
	return func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = m }
}

// TestConformance holds the engine to the contract of a Pruner, in every exec mode of pgx.
func TestConformance(t *testing.T) {
	modes := execModes
	if testing.Short() { // how the statements are sent does not depend on the server
		modes = execModes[:1]
	}
	for _, m := range modes {
		t.Run(m.String(), func(t *testing.T) {
			prunertest.Run(t, factory(t, pgtest.New(t), Options{}, mode(m)))
		})
	}
	if testing.Short() {
		return
	}
	t.Run("one sweeper", func(t *testing.T) {
		prunertest.Run(t, factory(t, pgtest.New(t), Options{OneSweeper: true}))
	})
	// Another client uses the pooler's two connections too, so that no batch can count on the one before.
	t.Run("through a pooler", func(t *testing.T) {
		db := pgtest.New(t)
		through, _ := pooled(t, db.Conn(t).Config(), 2)
		stop := asking(t, db.Conn(t, through, mode(pgx.QueryExecModeExec)))
		prunertest.Run(t, factory(t, db, Options{}, through))
		stop()
	})
	t.Run("counted by RETURNING", func(t *testing.T) {
		prunertest.Run(t, factory(t, pgtest.New(t), Options{}, func(c *pgx.ConnConfig) { c.RuntimeParams["track_counts"] = "off" }))
	})
}

// asking has a client ask again and again, until it is stopped. None of its questions may fail.
func asking(t *testing.T, conn *pgx.Conn) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			var one int
			if err := conn.QueryRow(context.WithoutCancel(ctx), "SELECT count(pg_sleep(0.001))").Scan(&one); err != nil {
				asked <- err
				return
			}
		}
		asked <- nil
	}()
	return func() {
		cancel()
		if err := <-asked; err != nil {
			t.Errorf("the client that asks beside: %v", err)
		}
	}
}

// populations numbers the schemas of a database, one for each population.
var populations atomic.Int64

// factory makes populations of the suite, one at a time. Those of one definition follow each other in one schema, emptied
// between them, since to make a schema takes longer than the check.
func factory(t testing.TB, db *pgtest.DB, o Options, opts ...func(*pgx.ConnConfig)) prunertest.Factory {
	admin, sweeper := db.Conn(t), db.Conn(t, opts...)
	other := db.Conn(t)
	schemas := map[string]string{} // by definition
	return func(ctx context.Context, f prunertest.Fixture) (prunertest.Population, error) {
		schema, made := schemas[f.DDL()]
		if !made {
			schema = fmt.Sprintf("pop%d", populations.Add(1))
		}
		p := &schemaPopulation{admin: admin, other: other, db: Conn(sweeper), options: o, sweep: prunertest.Moved(f.Sweep, schema), schema: schema}
		p.sweep.Timeouts.Lock = 30 * time.Millisecond
		script := "SET search_path = " + p.schema + ";"
		if made {
			for _, table := range prunertest.Tables() {
				script += "DELETE FROM " + table + ";"
			}
		} else {
			script = "CREATE SCHEMA " + p.schema + ";" + script + f.DDL()
			schemas[f.DDL()] = p.schema
		}
		if _, err := admin.PgConn().Exec(ctx, script).ReadAll(); err != nil {
			return nil, err
		}
		for _, ow := range f.Owners {
			if err := p.SetOwner(ctx, ow); err != nil {
				return nil, err
			}
		}
		if err := p.Insert(ctx, f.Rows...); err != nil {
			return nil, err
		}
		var err error
		p.arms, err = Open(ctx, p.db, p.sweep, p.options)
		return p, err
	}
}

type schemaPopulation struct {
	admin, other *pgx.Conn
	db           *DB
	options      Options
	sweep        policy.Sweep
	schema       string
	arms         []*Arm
	edit         func(shape, string) string
}

func (p *schemaPopulation) exec(ctx context.Context, sql string, args ...any) error {
	_, err := p.admin.Exec(ctx, sql, args...)
	return err
}

func (p *schemaPopulation) Pruner(_ context.Context, a policy.Arm) (pruner.Pruner, error) {
	for _, have := range p.arms {
		if have.Spec().Name == a.Name {
			fresh := Arm{target: have.target, db: p.db, edit: p.edit}
			return &fresh, nil
		}
	}
	return nil, fmt.Errorf("the engine has no arm %s", a)
}

func (p *schemaPopulation) IDs(ctx context.Context) ([]int64, error) {
	return p.ids(ctx, prunertest.Table)
}

func (p *schemaPopulation) Parts(ctx context.Context) ([]int64, error) {
	return p.ids(ctx, prunertest.PartTable)
}

func (p *schemaPopulation) Notes(ctx context.Context) ([]int64, error) {
	return p.ids(ctx, prunertest.NoteTable)
}

func (p *schemaPopulation) ids(ctx context.Context, table string) ([]int64, error) {
	rows, err := p.admin.Query(ctx, "SELECT id FROM "+p.schema+"."+table+" ORDER BY id")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

func text(v policy.Value) *string {
	if v.IsNull() {
		return nil
	}
	s := v.String()
	return &s
}

// inserted is one INSERT of many rows.
type inserted struct{ rows []string }

func (in *inserted) add(values ...*string) {
	parts := make([]string, len(values))
	for i, v := range values {
		if parts[i] = "NULL"; v != nil {
			parts[i] = literal(*v)
		}
	}
	in.rows = append(in.rows, "("+strings.Join(parts, ", ")+")")
}

func (p *schemaPopulation) insert(ctx context.Context, in inserted, table, columns string) error {
	if len(in.rows) == 0 {
		return nil
	}
	return p.exec(ctx, "INSERT INTO "+p.schema+"."+table+" ("+columns+") VALUES "+strings.Join(in.rows, ", "))
}

func (p *schemaPopulation) Insert(ctx context.Context, rows ...prunertest.Row) error {
	var entries inserted
	for _, r := range rows {
		entries.add(text(policy.Int(r.ID)), r.Age.Text(), text(r.State), text(r.Kind), text(r.Tenant), text(r.Owner), text(r.Hold), text(r.Own))
	}
	if err := p.insert(ctx, entries, prunertest.Table, "id, age, state, kind, owner_tenant, owner_id, hold, own"); err != nil {
		return err
	}
	return p.insertParts(ctx, rows...)
}

func (p *schemaPopulation) insertParts(ctx context.Context, rows ...prunertest.Row) error {
	var parts, notes inserted
	for _, r := range rows {
		for _, part := range r.Parts {
			id := text(policy.Int(part.ID))
			parts.add(id, text(policy.Int(r.ID)), id, text(part.State))
			for _, n := range part.Notes {
				notes.add(text(policy.Int(n)), id)
			}
		}
	}
	return errors.Join(p.insert(ctx, parts, prunertest.PartTable, "id, entry_id, name, state"), p.insert(ctx, notes, prunertest.NoteTable, "id, part_id"))
}

func (p *schemaPopulation) InsertParts(ctx context.Context, row int64, parts ...prunertest.Part) error {
	return p.insertParts(ctx, prunertest.Row{ID: row, Parts: parts})
}

func (p *schemaPopulation) SetPartState(ctx context.Context, id int64, state policy.Value) error {
	return p.exec(ctx, "UPDATE "+p.schema+".parts SET state = $2 WHERE id = $1", id, text(state))
}

func (p *schemaPopulation) SetState(ctx context.Context, id int64, state policy.Value) error {
	return p.exec(ctx, "UPDATE "+p.schema+".entries SET state = $2 WHERE id = $1", id, text(state))
}

func (p *schemaPopulation) SetOwner(ctx context.Context, o prunertest.Owner) error {
	return p.exec(ctx, "INSERT INTO "+p.schema+".owners VALUES ($1, $2, $3) ON CONFLICT (tenant, id) DO UPDATE SET state = excluded.state", o.Tenant, o.ID, text(o.State))
}

func (p *schemaPopulation) Pin(ctx context.Context, id int64) error {
	return p.exec(ctx, "INSERT INTO "+p.schema+".pins VALUES ($1)", id)
}

// begin opens the other session's transaction, once.
func (p *schemaPopulation) begin(ctx context.Context, sql string, args ...any) error {
	if p.other.PgConn().TxStatus() == 'I' {
		if _, err := p.other.Exec(ctx, "BEGIN"); err != nil {
			return err
		}
	}
	_, err := p.other.Exec(ctx, sql, args...)
	return err
}

func (p *schemaPopulation) Lock(ctx context.Context, id int64) error {
	return p.begin(ctx, "SELECT FROM "+p.schema+".entries WHERE id = $1 FOR UPDATE", id)
}

func (p *schemaPopulation) LockPart(ctx context.Context, id int64) error {
	return p.begin(ctx, "SELECT FROM "+p.schema+".parts WHERE id = $1 FOR UPDATE", id)
}

func (p *schemaPopulation) LockOwner(ctx context.Context, o prunertest.Owner) error {
	return p.begin(ctx, "SELECT FROM "+p.schema+".owners WHERE tenant = $1 AND id = $2 FOR UPDATE", o.Tenant, o.ID)
}

func (p *schemaPopulation) LockTable(ctx context.Context) error {
	return p.begin(ctx, "LOCK TABLE "+p.schema+".entries IN ACCESS EXCLUSIVE MODE")
}

func (p *schemaPopulation) Unlock(ctx context.Context) error {
	_, err := p.other.Exec(ctx, "ROLLBACK")
	return err
}

func (p *schemaPopulation) Close() error { return p.Unlock(context.Background()) }
