package place

import (
	"context"
	"fmt"
)

// Cost is what statements did, in units that no machine changes.
type Cost struct {
	Buffers int64 `json:"buffers"` // shared buffers looked at, found or read
	WAL     int64 `json:"wal"`     // bytes
}

// Minus is the difference.
func (c Cost) Minus(o Cost) Cost { return Cost{c.Buffers - o.Buffers, c.WAL - o.WAL} }

// Plus is the sum.
func (c Cost) Plus(o Cost) Cost { return Cost{c.Buffers + o.Buffers, c.WAL + o.WAL} }

// Cost is what all statements on the clone have cost so far, as the server counts them at the end of each: as they were
// sent, with the transaction's settings and whatever they fire. Left out are planning, which reads catalogs that a session
// remembers, and the record of the commit itself, which is the same for all.
func (c *Clone) Cost(ctx context.Context) (cost Cost, err error) {
	err = c.place.desk.QueryRow(ctx, `
SELECT coalesce(sum(s.shared_blks_hit + s.shared_blks_read), 0)::bigint, coalesce(sum(s.wal_bytes), 0)::bigint
  FROM pg_stat_statements(false) s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = $1`, c.Name).Scan(&cost.Buffers, &cost.WAL)
	if err != nil {
		return Cost{}, fmt.Errorf("read the meter: %w", err)
	}
	return cost, nil
}
