package prunertest

import (
	"context"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/memory"
)

// Memory makes populations of the reference model.
func Memory(ctx context.Context, f Fixture) (Population, error) {
	p := &inMemory{Table: &memory.Table{}, sweep: f.Sweep}
	for _, o := range f.Owners {
		p.Table.SetOwner(ownerKey(o), o.State)
	}
	return p, p.Insert(ctx, f.Rows...)
}

type inMemory struct {
	*memory.Table
	sweep policy.Sweep
}

func ownerKey(o Owner) memory.Key { return memory.KeyOf(policy.Text(o.Tenant), policy.Int(o.ID)) }

func (p *inMemory) Pruner(_ context.Context, a policy.Arm) (pruner.Pruner, error) {
	return memory.New(p.Table, p.sweep, a), nil
}

func (p *inMemory) IDs(context.Context) ([]int64, error) { return p.Table.IDs(), nil }

func (p *inMemory) Insert(ctx context.Context, rows ...Row) error {
	for _, r := range rows {
		p.Table.Insert(memory.Row{ID: r.ID, Age: r.Age.Instant(), Columns: r.Columns()})
		if err := p.InsertParts(ctx, r.ID, r.Parts...); err != nil {
			return err
		}
	}
	return nil
}

func (p *inMemory) InsertParts(_ context.Context, row int64, parts ...Part) error {
	for _, part := range parts {
		p.InsertInto(partName, memory.Row{ID: part.ID, Columns: map[string]policy.Value{"id": policy.Int(part.ID), "entry_id": policy.Int(row), "state": part.State}})
		for _, id := range part.Notes {
			p.InsertInto(noteName, memory.Row{ID: id, Columns: map[string]policy.Value{"part_id": policy.Int(part.ID)}})
		}
	}
	return nil
}

func (p *inMemory) Parts(context.Context) ([]int64, error) { return p.IDsIn(partName), nil }
func (p *inMemory) Notes(context.Context) ([]int64, error) { return p.IDsIn(noteName), nil }

func (p *inMemory) SetPartState(_ context.Context, id int64, state policy.Value) error {
	p.UpdateIn(partName, id, func(r *memory.Row) { r.Columns["state"] = state })
	return nil
}

func (p *inMemory) LockPart(_ context.Context, id int64) error {
	p.LockIn(partName, id)
	return nil
}

func (p *inMemory) SetState(_ context.Context, id int64, state policy.Value) error {
	p.Update(id, func(r *memory.Row) { r.Columns["state"] = state })
	return nil
}

func (p *inMemory) SetOwner(_ context.Context, o Owner) error {
	p.Table.SetOwner(ownerKey(o), o.State)
	return nil
}

func (p *inMemory) Pin(_ context.Context, id int64) error {
	p.Refuse(id, pruner.Block{Constraint: PinConstraint, Table: "public." + PinTable})
	p.InsertInto(pinName, memory.Row{ID: id, Columns: map[string]policy.Value{"entry_id": policy.Int(id)}})
	return nil
}

func (p *inMemory) Lock(_ context.Context, id int64) error {
	p.Table.Lock(id)
	return nil
}

func (p *inMemory) LockOwner(_ context.Context, o Owner) error {
	p.Table.LockOwner(ownerKey(o))
	return nil
}

func (p *inMemory) LockTable(context.Context) error {
	p.Table.LockTable("public." + Table)
	return nil
}

func (p *inMemory) Unlock(context.Context) error {
	p.Table.Unlock()
	return nil
}

func (p *inMemory) Close() error { return nil }
