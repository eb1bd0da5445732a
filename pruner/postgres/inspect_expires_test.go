package postgres

import "github.com/prunectl/prunectl/policy"

// expires makes the column an expiry.
func expires(column string) func(*policy.Sweep) {
	return func(s *policy.Sweep) { s.Age, s.Expires, s.Window = column, true, policy.AtOnce }
}

// expiresCatalogs are those of rows that expire. The column ended can be null, at cannot.
func expiresCatalogs() []inspected {
	ended := func(s *policy.Sweep) { s.Guard = policy.Guard{Ended: true} }
	const index = "CREATE INDEX t_ended ON t (ended, id)"
	return []inspected{
		{name: "an expiry that can be null", schema: index, sweep: on(expires("ended")), want: []finding{{OK, "age", "expires", "ended is timestamptz", ""}}, index: "t_ended"},
		{name: "an expiry that cannot be null", sweep: on(expires("at")), index: "t_at"},
		{name: "an index of the rows that expire", schema: index + " WHERE ended IS NOT NULL", sweep: on(expires("ended")), index: "t_ended"},
		{name: "an expiry that ends", schema: index, sweep: on(expires("ended"), ended), index: "t_ended"},
		{name: "an expiry that ends, and never null", sweep: on(expires("at"), ended), want: []finding{{Refused, "age", "guard.ended", "NOT NULL", ""}}},
		{name: "an expiry without a column", sweep: on(expires("until")), want: []finding{{Refused, "column", "expires", `x.t has no column "until"`, ""}}},
		{name: "an expiry in wall time", schema: "ALTER TABLE t ADD odd timestamp; CREATE INDEX ON t (odd)", sweep: on(expires("odd")), want: []finding{{Refused, "age", "expires", "as: wall is planned", ""}}},
		{name: "an expiry of no instants", schema: "ALTER TABLE t ADD odd text; CREATE INDEX ON t (odd)", sweep: on(expires("odd")), want: []finding{{Refused, "age", "expires", "which is no instant", ""}}},
		{name: "an expiry without an index", sweep: on(expires("ended")), want: []finding{{Refused, "index", "", "", `CREATE INDEX CONCURRENTLY ON "x"."t" ("ended", "id");`}}, heals: true},
	}
}
