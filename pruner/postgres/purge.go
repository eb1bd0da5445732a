package postgres

import (
	"context"
	"errors"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// PurgeInspection is what the catalog says about a purge of one tenant.
type PurgeInspection struct {
	Purge  policy.Purge // with its defaults
	Tenant string
	Checks []Check // Check.Key is a key of the purge: "tables.0.column", "tables.1.children.0.key", "exclude.public.audit", "tables"
}

// InspectPurge reads the catalog in one read-only transaction and checks the purge against it. What the catalog
// contradicts is in the checks. The error is a [*tenant.Error] where what was given names no tenant; any other is for a
// catalog that cannot be read, or a purge that is wrong by itself.
func InspectPurge(ctx context.Context, db *DB, p policy.Purge, of string) (*PurgeInspection, error) {
	return nil, errors.New("not written")
}

// Refused lists the checks that refuse the purge; none means that it may run.
func (i *PurgeInspection) Refused() []Check { return nil }

// Open returns what removes the tenant, or a [*RefusedError].
func (i *PurgeInspection) Open(db *DB) (*Purge, error) { return nil, errors.New("not written") }

// Purge removes the rows of one tenant from the tables of a purge. It implements [tenant.Remover].
type Purge struct{}

var _ tenant.Remover = (*Purge)(nil)

// Steps are the tables in their order, the children of a table before it; see [tenant.Remover].
func (p *Purge) Steps() []tenant.Step { return nil }

// Look counts what is left, see [tenant.Remover].
func (p *Purge) Look(ctx context.Context, bound int) (tenant.Proof, error) {
	return tenant.Proof{}, errors.New("not written")
}
