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
	for _, m := range execModes {
		t.Run(m.String(), func(t *testing.T) {
			prunertest.Run(t, factory(t, pgtest.New(t), Options{}, mode(m)))
		})
	}
	t.Run("one sweeper", func(t *testing.T) {
		prunertest.Run(t, factory(t, pgtest.New(t), Options{OneSweeper: true}))
	})
	t.Run("counted by RETURNING", func(t *testing.T) {
		prunertest.Run(t, factory(t, pgtest.New(t), Options{}, func(c *pgx.ConnConfig) { c.RuntimeParams["track_counts"] = "off" }))
	})
}

// populations numbers the schemas of a database, one for each population.
var populations atomic.Int64

// factory makes populations of the suite in schemas of their own. edit, if given, changes the arms.
func factory(t testing.TB, db *pgtest.DB, o Options, opts ...func(*pgx.ConnConfig)) prunertest.Factory {
	admin, sweeper := db.Conn(t), db.Conn(t, opts...)
	other := db.Conn(t)
	return func(ctx context.Context, f prunertest.Fixture) (prunertest.Population, error) {
		p := &schemaPopulation{admin: admin, other: other, db: Conn(sweeper), options: o, sweep: f.Sweep, schema: fmt.Sprintf("pop%d", populations.Add(1))}
		p.sweep.Table.Schema = p.schema
		if g := p.sweep.Guard.Owner; g != nil {
			own := *g
			own.Table.Schema = p.schema
			p.sweep.Guard.Owner = &own
		}
		p.sweep.Timeouts.Lock = 30 * time.Millisecond
		script := "DROP SCHEMA IF EXISTS " + p.schema + " CASCADE; CREATE SCHEMA " + p.schema + "; SET search_path = " + p.schema + ";" + prunertest.Schema + f.Index.DDL + ";"
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
	rows, err := p.admin.Query(ctx, "SELECT id FROM "+p.schema+".entries ORDER BY id")
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

func (p *schemaPopulation) Insert(ctx context.Context, rows ...prunertest.Row) error {
	if len(rows) == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "INSERT INTO %s.entries (id, age, state, kind, owner_tenant, owner_id) VALUES ", p.schema)
	null := func(s *string) string {
		if s == nil {
			return "NULL"
		}
		return literal(*s)
	}
	for i, r := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "(%d, %s, %s, %s, %s, %s)", r.ID, null(r.Age.Text()), null(text(r.State)), null(text(r.Kind)), null(text(r.Tenant)), null(text(r.Owner)))
	}
	return p.exec(ctx, b.String())
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

func (p *schemaPopulation) Close() error {
	ctx := context.Background()
	return errors.Join(p.Unlock(ctx), p.exec(ctx, "DROP SCHEMA "+p.schema+" CASCADE"))
}
