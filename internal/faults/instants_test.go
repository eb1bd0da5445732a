package faults

import (
	"fmt"

	"github.com/prunectl/prunectl/internal/report"
)

// instants are faults of zones, clocks and the cutoff itself.
var instants = []fault{
	{
		file: "wall-clock-ages", query: "select count(*) from t_naive where at < timestamp '2025-01-30 00:00'", answer: "3", rows: "select count(*) from t_naive",
		steps: inZonesAndModes(func(zone, mode string) run {
			return run{args: "sweep --as-of 2025-03-01T00:00:00Z", policy: unguarded("t_naive", "t_naive_age"), env: []string{"TZ=" + zone}, params: mode, code: 4,
				outcome: outcome{stop: report.Refused}, left: 8, says: []string{"column at is timestamp without time zone; as: wall is planned, not in this version"}}
		}),
	},
	{
		file: "window-over-a-clock-change", query: "select count(*) from t_dst where at < timestamptz '2025-03-25 10:00+00'", answer: "4", rows: "select count(*) from t_dst",
		steps: append(inZonesAndModes(func(zone, mode string) run {
			return run{args: "plan --as-of 2025-04-01T12:00:00+02:00", policy: with(unguarded("t_dst", "t_dst_age"), "window: 7d"), env: []string{"TZ=" + zone, "PGTZ=" + zone}, params: mode + ";timezone=" + zone,
				outcome: outcome{stop: report.Planned, due: 4, thisRun: 4}, left: 10, says: []string{"2025-03-25T10:00:00Z"}}
		}),
			run{args: "sweep --as-of 2025-04-01T12:00:00+02:00", policy: with(unguarded("t_dst", "t_dst_age"), "window: 7d"), env: []string{"TZ=Europe/Berlin"}, params: "timezone=Europe/Berlin",
				outcome: outcome{stop: report.Drained, removed: 4}, left: 6, says: []string{"2025-03-25T10:00:00Z"}},
			fact{"select min(at) = timestamptz '2025-03-25 10:00+00' from t_dst", "t"},
		),
	},
	{
		file: "exactly-at-the-cutoff", query: "select string_agg(id::text, ',') from t_edge where at < '2025-01-30 00:00:00+00'", answer: "2", rows: "select count(*) from t_edge",
		steps: []step{
			edge("plan", "2025-03-01T00:00:00Z", 1, 3), edge("plan", "2025-03-01T00:00:00.0000005Z", 1, 3), edge("sweep", "2025-03-01T00:00:00.0000005Z", 1, 2),
			fact{"select string_agg(id::text, ',' order by id) from t_edge", "1,3"},
			edge("sweep", "2025-03-01T00:00:00Z", 0, 2), edge("sweep --dry-run", "2025-03-01T00:00:00.000001Z", 1, 2), edge("sweep", "2025-03-01T00:00:00.000001Z", 1, 1),
			fact{"select string_agg(id::text, ',' order by id) from t_edge", "3"},
		},
	},
}

// edge is a run at an instant that finds so many rows due.
func edge(verb, at string, due, left int) run {
	o := outcome{stop: report.Planned, due: due, thisRun: due}
	if verb == "sweep" {
		o = outcome{stop: report.Drained, removed: due}
	}
	return run{args: fmt.Sprintf("%s --as-of %s", verb, at), policy: unguarded("t_edge", "t_edge_age"), outcome: o, left: left}
}

// inZonesAndModes repeats a run as hosts of three zones with each exec mode of the driver.
func inZonesAndModes(of func(zone, mode string) run) []step {
	var steps []step
	for _, zone := range []string{"America/New_York", "Asia/Tokyo", "Europe/Berlin"} {
		for _, mode := range []string{"", "exec", "simple_protocol"} {
			name := zone
			params := ""
			if mode != "" {
				name, params = zone+" "+mode, "default_query_exec_mode="+mode
			}
			r := of(zone, params)
			r.name = name
			steps = append(steps, r)
		}
	}
	return steps
}
