package postgres

import (
	"fmt"
	"strings"
	"time"
)

// How long the engine waits for what it does beside a batch.
const (
	rollbackPatience = 5 * time.Second  // to bring a connection back to idle
	commitPatience   = 10 * time.Second // beyond the statement timeouts, for a COMMIT: no server setting ends one that waits for a standby
	askPatience      = 10 * time.Second // to ask what became of a commit
	cancelPatience   = 5 * time.Second  // for a batch to end after it was canceled
	cancelPause      = 200 * time.Millisecond
)

// pins fix the plan of a batch: one and the same at any limit, custom and generic, analysed and never analysed. Without
// them the planner walks the target by its primary key, scans the owners, or compiles for half a second (JIT) a statement
// that runs for ten milliseconds.
var pins = []struct{ name, value string }{
	{"jit", "off"},
	{"plan_cache_mode", "force_generic_plan"},
	{"work_mem", "16MB"},
	{"enable_seqscan", "off"},
	{"enable_bitmapscan", "off"},
	{"enable_nestloop", "off"},
	{"enable_mergejoin", "off"},
	{"enable_sort", "off"},
	{"enable_incremental_sort", "off"},
	{"max_parallel_workers_per_gather", "0"},
}

const (
	argStatementTimeout = "statement timeout" // milliseconds
	argLockTimeout      = "lock timeout"      // milliseconds
)

// atMost is our timeout, or the one in force where that is shorter: a batch never gets a longer one than a role or a
// database was given.
func atMost(setting, ours string) string {
	return fmt.Sprintf("coalesce(least(nullif((extract(epoch FROM current_setting('%s')::interval) * 1000)::bigint, 0), %s), %s)", setting, ours, ours)
}

// settingsSQL sets what holds for this transaction only, and reads the statistics before the batch. set_config, unlike
// SET LOCAL, takes parameters and is silent.
func (t *target) settingsSQL() statement {
	r := &renderer{target: t}
	// set_config answers with a unit ("30s"); what is in force is read back in milliseconds.
	inMillis := "(extract(epoch FROM set_config('%s', (%s)::text, true)::interval) * 1000)::bigint"
	r.line("SELECT "+inMillis, "statement_timeout", atMost("statement_timeout", r.arg(argStatementTimeout, "bigint")))
	r.line("     , "+inMillis, "lock_timeout", atMost("lock_timeout", r.arg(argLockTimeout, "bigint")))
	if t.sweep.Sync {
		r.line("     , set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)")
	} else {
		r.line("     , set_config('synchronous_commit', 'off', true)  -- a lost delete is done again")
	}
	r.line("     , pg_stat_get_xact_tuples_deleted(%d)", t.table.oid)
	r.common()
	return statement{r.b.String(), r.args}
}

// readSettingsSQL sets the same planner settings for a read-only look.
func (t *target) readSettingsSQL() string {
	r := &renderer{target: t}
	r.line("SELECT set_config('lock_timeout', (%s)::text, true)", atMost("lock_timeout", fmt.Sprint(t.sweep.Timeouts.Lock.Milliseconds())))
	r.line("     , set_config('statement_timeout', (%s)::text, true)", atMost("statement_timeout", fmt.Sprint(t.sweep.Timeouts.Statement.Milliseconds())))
	r.common()
	return r.b.String()
}

func (r *renderer) common() {
	own := false
	for _, s := range r.sweep.Set {
		own = own || strings.EqualFold(s.Name, "row_security")
	}
	if !own {
		r.line("     , set_config('row_security', 'off', true)  -- an error instead of rows that are silently not seen")
	}
	for _, p := range pins {
		r.line("     , set_config('%s', '%s', true)", p.name, p.value)
	}
	for _, s := range r.sweep.Set {
		r.line("     , set_config(%s, %s, true)", literal(s.Name), literal(s.Value))
	}
}

// afterSQL reads the statistics after the batch, looks again at rows that were picked and stayed, and says the
// transaction's id, by which the outcome of its commit can be asked for.
func (t *target) afterSQL(s shape) statement {
	r := &renderer{target: t, shape: s}
	r.line("SELECT pg_stat_get_xact_tuples_deleted(%d)", t.table.oid)
	r.line("     , %s", transactionSQL)
	if r.returning() {
		// A row that is still the same version was vetoed; one that somebody else changed has another address by now.
		r.line("     , (SELECT count(*) FROM ONLY %s d", tableName(t.table.name))
		r.line("         WHERE d.ctid = ANY (coalesce(nullif(current_setting('prunectl.stayed', true), ''), '{}')::tid[])")
		r.line("           AND %s < %s)", t.at("d"), r.arg(argCutoff, "timestamptz"))
	} else {
		r.line("     , 0")
	}
	return statement{r.b.String(), r.args}
}
