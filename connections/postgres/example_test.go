package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/connections"
	"github.com/prunectl/prunectl/connections/postgres"
)

// example is the one of the README.
func example(ctx context.Context, pool *pgxpool.Pool, sealed []byte) error {
	store := postgres.New(pool, postgres.Options{})
	made, err := store.Create(ctx, connections.Draft{
		Tenant: "acme", Kind: "crm", Name: "Sales", Settings: []byte(`{"region": "eu"}`), Secret: connections.NewSecret(sealed),
	})
	if err != nil {
		return err
	}
	found, err := store.Get(ctx, "acme", made.ID)
	if err != nil {
		return err
	}
	fmt.Println(found.Name, found.Secret)                         // Sales [secret]
	if _, err := store.Revoke(ctx, "acme", made.ID); err != nil { // from here on it is not found; its row stays
		return err
	}
	removed, err := store.Purge(ctx, "acme") // everything of the tenant, revoked ones too; no error: none is left
	fmt.Println(removed, "removed")
	return err
}

func TestExample(t *testing.T) {
	db := installed.New(t)
	if err := example(bounded(t), db.Pool(t), sealed); err != nil {
		t.Error(err)
	}
	if n := db.Int(t, `select count(*) from connections`); n != 0 {
		t.Errorf("%d are left", n)
	}
}
