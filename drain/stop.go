package drain

// Stop says what ended a drain. The words are those of the report.
type Stop string

const (
	// StopDrained: a pass reached the cutoff and left nothing due behind.
	StopDrained Stop = "drained"
	// StopCeiling: the sweep's own ceiling of rows, batches or time, named by Report.StopBy. More may be due.
	StopCeiling Stop = "ceiling"
	// StopBudget: the budget of the whole run, rows or time, named by Report.StopBy. More may be due.
	StopBudget Stop = "budget"
	// StopLocked: due rows are left that others hold or keep changing, also in a second pass; or the whole table is locked,
	// and Report.Err names it.
	StopLocked Stop = "locked"
	// StopStuck: the pass reached the cutoff, and due rows are left that the database refuses to delete: Report.Blocked.
	StopStuck Stop = "stuck"
	// StopBusy: another sweeper holds the sweep.
	StopBusy Stop = "busy"
	// StopRefused: the bounds are wrong, and nothing was touched. Report.Err says why.
	StopRefused Stop = "refused"
	// StopFailed: an error that no retry mends: Report.Err. What was committed before is counted.
	StopFailed Stop = "failed"
	// StopSignal: Bounds.Stop or Options.Stop was closed, or the context ended.
	StopSignal Stop = "signal"
	// StopNotReached: it had no turn, or was cut short because another arm of its sweep, or under Options.FailFast another
	// sweep, had failed.
	StopNotReached Stop = "not_reached"
)

// What a ceiling or a budget counts: Report.StopBy.
const (
	ByRows    = "rows"
	ByBatches = "batches"
	ByTime    = "time"
)
