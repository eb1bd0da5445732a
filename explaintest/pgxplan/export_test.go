package pgxplan

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Text is what EXPLAIN prints for a statement.
func Text(ctx context.Context, db DB, st Statement) (text []byte, err error) {
	err = rolledBack(ctx, db, func(tx pgx.Tx) error {
		text, err = output(ctx, tx, st, nil)
		return err
	})
	return text, err
}
