package connections

import (
	"context"
	"time"
)

// Store keeps connections. Several goroutines may use one at once. What is given is checked before anything is asked or
// changed: [ErrInput]. No error has a secret in it. A call whose context has ended does nothing.
type Store interface {
	// Create keeps a new connection, and returns it without its secret. The error is ErrExists where the tenant has a
	// connection of that id, or had one that is revoked; that one stays as it is.
	Create(ctx context.Context, d Draft) (Connection, error)

	// Get returns a connection with its secret, or ErrNotFound.
	Get(ctx context.Context, tenant, id string) (Connection, error)

	// List returns a page of those connections of a tenant that are not revoked, without their secrets; of an unknown
	// tenant there are none. The error is ErrLimit or ErrCursor.
	List(ctx context.Context, tenant string, p Page) (List, error)

	// Update changes a connection, and returns it without its secret, or ErrNotFound, also for one that is revoked. Of two
	// at once that change the same thing the later one stays.
	Update(ctx context.Context, tenant, id string, c Change) (Connection, error)

	// Revoke ends a connection, and returns when it was revoked: now, or when it was before, also by another at once. From
	// then on nothing but a revocation and a purge finds it. Its secret is removed. The error is ErrNotFound.
	Revoke(ctx context.Context, tenant, id string) (time.Time, error)

	// Purge removes all connections of a tenant for good, revoked ones too, and returns how many: none and no error where
	// the tenant is unknown. When it returns no error a look has found that nothing is left, and what it removed is
	// durable. Beside an error the number is what was removed. The error is a [*LeftError] where something is left; who
	// purges a tenant has seen to it that nobody writes for it any more.
	Purge(ctx context.Context, tenant string) (int, error)
}
