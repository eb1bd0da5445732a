package postgres

import (
	"database/sql/driver"
	"fmt"

	"github.com/prunectl/prunectl/connections"
)

// parameter is a secret on its way to the server: pgx finds the bytes, and a tracer that prints the arguments of a statement
// finds what a secret shows. It is no Stringer, whose text pgx would send.
type parameter struct{ secret connections.Secret }

// Value is the bytes for pgx, null for none.
func (p parameter) Value() (driver.Value, error) {
	if p.secret.IsZero() {
		return nil, nil
	}
	return p.secret.Reveal(), nil
}

// Format does not show the secret.
func (p parameter) Format(f fmt.State, verb rune) { p.secret.Format(f, verb) }
