package plancases

import (
	"fmt"
	"strings"

	et "github.com/prunectl/prunectl/explaintest"
)

// Case is a statement with what holds for its plan.
type Case struct {
	Name     string
	SQL      string
	Args     []any
	Settings map[string]string
	Analyze  bool
	JIT      bool // only where the server can compile
	// GenericDiffers says that a plan for all values is rightly another one, to which the rules do not apply.
	GenericDiffers bool
	Holds          []et.Rule
	Breaks         []Breaks
}

// Breaks is a rule that the plan breaks, with a part of the error.
type Breaks struct {
	Rule et.Rule
	Says string
}

// Problems lists where the rules do not say of a plan what they should.
func (c Case) Problems(p *et.Plan) (problems []string) {
	for _, r := range c.Holds {
		if err := et.Check(p, r); err != nil {
			problems = append(problems, fmt.Sprintf("%s: must hold, but %v", c.Name, err))
		}
	}
	for _, b := range c.Breaks {
		switch err := et.Check(p, b.Rule); {
		case err == nil:
			problems = append(problems, fmt.Sprintf("%s: %s: holds, but must not:\n%s", c.Name, b.Rule, p))
		case !strings.Contains(err.Error(), b.Says):
			problems = append(problems, fmt.Sprintf("%s: want %q in the error, which is: %v", c.Name, b.Says, err))
		}
	}
	return problems
}

// All lists the cases. Their plans are the planner's own choice where they hold; where a bad plan is wanted, Settings ask for it.
func All() []Case {
	var (
		noSeq    = map[string]string{"enable_seqscan": "off"}
		noBitmap = map[string]string{"enable_seqscan": "off", "enable_bitmapscan": "off"}
		age      = et.UsesIndex("public.run_events", "run_events_retention")
		finished = et.UsesIndex("jobs", "jobs_state")
		audit    = et.UsesIndex(`"Audit-Log"."Run ""Events"""`, `"Idx.Created At"`)
		lower    = et.UsesIndex(`"Run ""Events"""`, "Lower")
		parts    = et.UsesIndex("deliveries", "deliveries_age")
	)
	return []Case{
		{
			Name: "delete_by_address",
			SQL: `DELETE FROM run_events d WHERE d.ctid = ANY (ARRAY(SELECT e.ctid FROM run_events e
 WHERE e.created_at >= $1 AND e.created_at < $2 ORDER BY e.created_at LIMIT $3))`,
			Args:    []any{"2026-01-02 00:00:00+00", "2026-01-03 00:00:00+00", 100},
			Analyze: true,
			Holds: []et.Rule{
				age.BoundOn("created_at"), age.RangeOn("created_at"), age.ReadSide().RangeOn("created_at"), age.As("e"),
				et.NodeType("run_events", "Tid Scan").DeleteSide(), et.NodeType("run_events", "Index Scan").ReadSide(), et.NodeType("run_events", "Tid Scan").As("d"),
				et.NoSeqScan("run_events"), et.NoSeqScan("public.run_events"), et.NoSort(), et.NoSort().On("run_events"),
				et.MaxBuffers(2000), et.MaxRowsRemovedByFilter(0), et.NoJIT(),
			},
			Breaks: []Breaks{
				{age.BoundOn("tenant_id"), "does not bound tenant_id"},
				{age.BoundOn("nothing"), "it has no column nothing"},
				{age.DeleteSide(), "nothing finds rows of it"},
				{et.UsesIndex("run_events", "run_events_pkey"), "is read through the index run_events_retention"},
				{et.UsesIndex("other.run_events", "run_events_retention"), "the plan does not read other.run_events"},
				{et.NodeType("run_events", "Tid Scan"), "is read by a Index Scan"},
				{et.NodeType("run_events", "Tid Scan").ReadSide(), "is read by a Index Scan"},
				{et.NoSeqScan("run_event"), "it reads public.run_events"},
				{et.MaxBuffers(5), "shared buffers"},
			},
		},
		{
			Name: "delete_by_join",
			SQL: `DELETE FROM run_events d WHERE d.ctid IN (SELECT e.ctid FROM run_events e
 WHERE e.created_at < $1 ORDER BY e.created_at LIMIT 5000)`,
			Args:     []any{"2026-02-01 00:00:00+00"},
			Settings: map[string]string{"enable_nestloop": "off", "enable_mergejoin": "off"},
			Holds:    []et.Rule{age.ReadSide().BoundOn("created_at"), et.NoSeqScan("run_events").ReadSide()},
			Breaks: []Breaks{
				{age, "is read by a Seq Scan"},
				{et.NodeType("run_events", "Tid Scan").DeleteSide(), "ctid IN (SELECT ...) is a join"},
				{et.NoSeqScan("run_events"), "public.run_events is read whole"},
				{age.ReadSide().RangeOn("created_at"), "created_at has no lower bound"},
				{et.MaxBuffers(1_000_000), "was not executed"},
				{et.MaxRowsRemovedByFilter(1_000_000), "was not executed"},
			},
		},
		{
			Name:  "index_read_whole",
			SQL:   `SELECT e.note FROM run_events e ORDER BY e.created_at LIMIT 10`,
			Holds: []et.Rule{age.Whole(), et.NoSeqScan("run_events"), et.NoSort()},
			Breaks: []Breaks{
				{age, "is read from end to end"}, {age.BoundOn("created_at"), "is read from end to end"}, {age.Whole().BoundOn("created_at"), "is read from end to end"},
			},
		},
		{
			Name:     "trailing_column",
			SQL:      `SELECT j.id FROM jobs j WHERE j.finished_at < $1 AND j.finished_at > $2`,
			Args:     []any{"2026-01-02 00:00:00+00", "2026-01-01 00:00:00+00"},
			Settings: noBitmap,
			Holds:    []et.Rule{finished, et.NoSeqScan("jobs")},
			Breaks: []Breaks{
				{finished.BoundOn("finished_at"), "finished_at bounds nothing, since state before it is not fixed by an equality"},
				{finished.BoundOn("state"), "does not bound state"},
			},
		},
		{
			Name:  "fixed_leading_column",
			SQL:   `SELECT j.id FROM jobs j WHERE j.state = 'done' AND j.finished_at < $1`,
			Args:  []any{"2026-01-01 06:00:00+00"},
			Holds: []et.Rule{finished.BoundOn("state", "finished_at"), finished.RangeOn("state")},
			Breaks: []Breaks{
				{finished.RangeOn("finished_at"), "finished_at has no lower bound"},
			},
		},
		{
			Name:     "list_of_states",
			SQL:      `SELECT j.id FROM jobs j WHERE j.state = ANY ($1) AND j.finished_at < $2 ORDER BY j.finished_at LIMIT 10`,
			Args:     []any{[]string{"done", "failed"}, "2026-01-01 06:00:00+00"},
			Settings: noBitmap,
			Holds:    []et.Rule{finished.BoundOn("finished_at")},
			Breaks:   []Breaks{{et.NoSort(), "rows are sorted by j.finished_at"}, {et.NoSort().On("jobs"), "public.jobs is sorted by"}, {et.NoSort().On("runs"), "does not read runs"}},
		},
		{
			Name: "bitmap_or",
			SQL: `SELECT j.note FROM jobs j WHERE j.state = 'done' AND j.finished_at < $1 OR
 j.state = 'failed' AND j.finished_at < $2 AND j.finished_at > $1`,
			Args:     []any{"2026-01-01 03:00:00+00", "2026-01-01 06:00:00+00"},
			Settings: noSeq,
			Holds:    []et.Rule{finished.BoundOn("state", "finished_at"), et.NodeType("jobs", "Bitmap Heap Scan")},
			Breaks: []Breaks{
				{finished.RangeOn("finished_at"), "finished_at has no lower bound"},
				{et.UsesIndex("jobs", "jobs_pkey"), "is read through the index jobs_state"},
			},
		},
		{
			Name: "with_queries",
			SQL: `WITH old AS MATERIALIZED (
  SELECT e.ctid AS tid, e.run_id FROM run_events e WHERE e.created_at < $1 ORDER BY e.created_at LIMIT 50),
gone AS (DELETE FROM run_events d WHERE d.ctid = ANY (ARRAY(SELECT o.tid FROM old o)) AND d.kind <> 'rare')
SELECT o.run_id FROM old o ORDER BY o.run_id`,
			Args:    []any{"2026-02-01 00:00:00+00"},
			Analyze: true,
			Holds: []et.Rule{
				age.In("old").BoundOn("created_at"), et.NodeType("run_events", "Tid Scan").In("gone"), et.NodeType("run_events", "Tid Scan").DeleteSide(),
				et.NoSort().On("run_events").In("gone"), et.MaxRowsRemovedByFilter(1),
			},
			Breaks: []Breaks{
				{et.NoSort(), "sorted by"},
				{et.NoSort().On("run_events"), "public.run_events is sorted by"}, // through the reader of old
				{age.In("gone"), "nothing finds rows of it"},
				{age.In("nowhere"), "in WITH nowhere"},
				{et.MaxBuffers(53), "shared buffers"}, // of old alone they are fewer; gone, which nobody reads, has 50 more
				{et.MaxRowsRemovedByFilter(0), "1 rows were read and removed by"},
			},
		},
		{
			Name: "with_rows_of_a_delete",
			SQL: `WITH gone AS (
  DELETE FROM run_events d WHERE d.created_at >= $1 AND d.created_at < $2 RETURNING d.run_id)
SELECT count(*) FROM gone g`,
			Args:    []any{"2026-01-02 00:00:00+00", "2026-01-02 01:00:00+00"},
			Analyze: true,
			Holds:   []et.Rule{age.In("gone").DeleteSide().RangeOn("created_at"), et.MaxBuffers(180)}, // of 60 rows, counted once
			Breaks:  []Breaks{{et.MaxBuffers(60), "shared buffers"}},
		},
		{
			Name:  "partitions",
			SQL:   `DELETE FROM deliveries d WHERE d.created_at >= $1 AND d.created_at < $2`,
			Args:  []any{"2026-01-31 23:00:00+00", "2026-02-01 01:00:00+00"},
			Holds: []et.Rule{parts.RangeOn("created_at"), parts.DeleteSide().RangeOn("created_at"), parts.As("d"), et.NoSeqScan("deliveries"), et.NoSeqScan("deliveries_january"), et.NodeType("public.deliveries", "Index Scan").DeleteSide()},
			Breaks: []Breaks{
				{parts.ReadSide(), "does not read deliveries on the read side"},
				{et.UsesIndex("deliveries", "deliveries_january_created_at_idx"), "is read through the index deliveries_february_created_at_idx"},
				{et.UsesIndex("deliveries", "deliveries_pkey"), "is read through the index deliveries_january_created_at_idx"},
			},
		},
		{
			Name:           "partition_read_whole",
			SQL:            `SELECT d.note FROM deliveries d WHERE d.created_at >= $1`,
			Args:           []any{"2026-01-31 23:00:00+00"},
			Settings:       map[string]string{"enable_bitmapscan": "off"},
			GenericDiffers: true,
			Holds:          []et.Rule{parts.BoundOn("created_at").As("d_1"), et.NoSeqScan("deliveries_january")},
			Breaks: []Breaks{
				{parts, "public.deliveries_february is read by a Seq Scan"},
				{et.NoSeqScan("deliveries"), "public.deliveries_february is read whole"},
			},
		},
		{
			Name:     "filter",
			Settings: map[string]string{"enable_bitmapscan": "off"},
			SQL:      `SELECT e.note FROM run_events e WHERE e.created_at >= $1 AND e.created_at < $2 AND e.note LIKE 'm%'`,
			Args:     []any{"2026-01-02 00:00:00+00", "2026-01-03 00:00:00+00"},
			Analyze:  true,
			Holds:    []et.Rule{age.RangeOn("created_at"), et.MaxRowsRemovedByFilter(1440), et.MaxRowsRemovedByFilter(1440).On("run_events")},
			Breaks: []Breaks{
				{et.MaxRowsRemovedByFilter(1439), "1440 rows were read and removed by"},
				{et.MaxRowsRemovedByFilter(1439).On("run_events"), "1440 rows were read and removed by"},
				{et.MaxRowsRemovedByFilter(1439).On("jobs"), "does not read jobs"},
				{age.BoundOn("note"), "has no column note"},
			},
		},
		{
			Name: "probes",
			SQL: `SELECT e.sequence, r.status FROM run_events e JOIN runs r ON r.tenant_id = e.tenant_id AND r.id = e.run_id
 WHERE e.created_at >= $1 AND e.created_at < $2 AND r.status = 'running'`,
			Args:     []any{"2026-01-02 09:00:00+00", "2026-01-02 10:00:00+00"},
			Settings: map[string]string{"enable_hashjoin": "off", "enable_mergejoin": "off", "enable_material": "off", "enable_seqscan": "off", "enable_memoize": "off", "enable_bitmapscan": "off"},
			Analyze:  true,
			Holds:    []et.Rule{et.UsesIndex("runs", "runs_pkey").RangeOn("tenant_id", "id"), age.RangeOn("created_at")},
			Breaks:   []Breaks{{et.MaxRowsRemovedByFilter(10), "rows were read and removed by"}},
		},
		{
			Name:     "row_comparison",
			SQL:      `SELECT e.note FROM run_events e WHERE e.created_at <= $1 AND (e.created_at, e.tenant_id) > ($2, 'tenant-3') ORDER BY e.created_at, e.tenant_id LIMIT 10`,
			Args:     []any{"2026-01-02 06:00:00+00", "2026-01-02 00:00:00+00"},
			Settings: noBitmap,
			Holds:    []et.Rule{age.RangeOn("created_at")},
			Breaks:   []Breaks{{age.BoundOn("tenant_id"), "does not bound tenant_id"}},
		},
		{
			Name:     "varchar",
			SQL:      `SELECT e.note FROM run_events e WHERE e.kind = $1 AND e.sequence < $2`,
			Args:     []any{"rare", 5},
			Settings: noBitmap,
			Holds:    []et.Rule{et.UsesIndex("run_events", "run_events_kind").BoundOn("kind", "sequence")},
		},
		{
			Name:   "quoted",
			SQL:    `DELETE FROM "Audit-Log"."Run ""Events""" x WHERE x."createdAt" > $1 AND x."createdAt" < $2 AND x."Id" > 3`,
			Args:   []any{"2026-01-02 00:00:00+00", "2026-01-02 01:00:00+00"},
			Holds:  []et.Rule{audit.RangeOn("createdAt"), audit.BoundOn(`"createdAt"`), audit.DeleteSide()},
			Breaks: []Breaks{{audit.BoundOn("Id"), `Id bounds nothing, since "createdAt" before it is not fixed`}, {audit.BoundOn("createdat"), "has no column createdat"}},
		},
		{
			Name:     "expressions",
			SQL:      `SELECT x.name FROM "Audit-Log"."Run ""Events""" x WHERE lower(x.name) = $1 AND x."Id" + 1 > 4 AND x."Id" + 1 < 5000`,
			Args:     []any{"n77"},
			Settings: noBitmap,
			Holds:    []et.Rule{lower.BoundOn("lower(name)"), lower.RangeOn(`"Id" + 1`), lower.RangeOn(`("Id"+1)`)},
			Breaks:   []Breaks{{lower.BoundOn("name"), "has no column name"}},
		},
		{
			Name:   "nothing_to_read",
			SQL:    `SELECT e.note FROM run_events e WHERE e.created_at < $1 AND false`,
			Args:   []any{"2026-01-02 00:00:00+00"},
			Holds:  []et.Rule{et.NoSort()},
			Breaks: []Breaks{{age, "it reads no table at all"}, {et.NoSeqScan("run_events"), "it reads no table at all"}},
		},
		{
			Name:     "parallel",
			SQL:      `SELECT count(*) FROM run_events e WHERE e.note > 'm'`,
			Settings: map[string]string{"parallel_setup_cost": "0", "parallel_tuple_cost": "0", "min_parallel_table_scan_size": "0", "max_parallel_workers_per_gather": "2"},
			Analyze:  true,
			Breaks:   []Breaks{{et.NoSeqScan("run_events"), "Parallel Seq Scan on public.run_events e"}, {age, "is read by a Seq Scan"}, {et.MaxBuffers(10), "of them here"}},
		},
		{
			Name:     "compiled",
			SQL:      `SELECT e.note FROM run_events e WHERE e.created_at >= $1 AND e.created_at < $2`,
			Args:     []any{"2026-01-02 00:00:00+00", "2026-01-02 01:00:00+00"},
			Settings: map[string]string{"jit": "on", "jit_above_cost": "0"},
			JIT:      true,
			Holds:    []et.Rule{age.BoundOn("created_at")},
			Breaks:   []Breaks{{et.NoJIT(), "the plan is compiled"}},
		},
	}
}
