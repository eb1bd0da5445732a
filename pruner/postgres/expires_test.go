package postgres

import (
	"testing"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// TestRenewed lets the holder of a lease act while a batch that has found it expired waits for its row.
func TestRenewed(t *testing.T) {
	t.Parallel()
	const (
		tables = "CREATE TABLE lease (id int PRIMARY KEY, until timestamptz); CREATE INDEX lease_until ON lease (until, id) WHERE until IS NOT NULL"
		rows   = "TRUNCATE lease; INSERT INTO lease SELECT g, timestamptz '2020-01-01 00:00+00' + g * interval '1 hour' FROM generate_series(1, 3) g; INSERT INTO lease VALUES (4, NULL)"
	)
	sweep := policy.Sweep{Name: "leases", Table: policy.Name{Schema: "public", Table: "lease"}, Age: "until", Expires: true, Window: policy.AtOnce,
		Guard: policy.Guard{None: "an expired lease is nobody's"}}
	r := newRace(t, tables, rows, sweep, []step{{name: "left", sql: "SELECT string_agg(id::text, ' ' ORDER BY id) FROM lease"}})
	other, s := r.Conn(t), r.sweeper(t, Options{})
	all := count(3, 3, 0, 0, 0, 0)
	for _, d := range []disturbance{
		{"renewed", "UPDATE lease SET until = until + interval '500 hours' WHERE id = 2", true, "COMMIT", count(3, 2, 0, 0, 1, 0), "2 4", pruner.Result{}, ""},
		{"renewed and rolled back", "UPDATE lease SET until = until + interval '500 hours' WHERE id = 2", true, "ROLLBACK", all, "4", pruner.Result{}, ""},
		{"kept for ever", "UPDATE lease SET until = NULL WHERE id = 2", true, "COMMIT", count(3, 2, 0, 0, 1, 0), "2 4", pruner.Result{}, ""},
		{"renewed to the moment of the sweep", "UPDATE lease SET until = timestamptz '2020-01-01 00:00+00' + interval '100 hours' WHERE id = 2", true, "COMMIT", count(3, 2, 0, 0, 1, 0), "2 4", pruner.Result{}, ""},
		{"given up", "DELETE FROM lease WHERE id = 2", true, "COMMIT", count(3, 2, 0, 0, 1, 0), "4", pruner.Result{}, ""},
		{"another taken", "INSERT INTO lease VALUES (5, '2020-03-01 00:00+00')", false, "COMMIT", all, "4 5", pruner.Result{}, ""},
	} {
		t.Run(d.name, func(t *testing.T) { r.disturb(t, other, s, d) })
	}
}
