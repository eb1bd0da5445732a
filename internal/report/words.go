package report

import "encoding/json"

// Stop is why a sweep ended.
type Stop string

// The reasons.
const (
	Drained    Stop = "drained"     // a pass reached the cutoff and left nothing due behind
	Ceiling    Stop = "ceiling"     // the sweep's own bound; StopBy says which
	Budget     Stop = "budget"      // the run's bound; StopBy says which
	Locked     Stop = "locked"      // due rows are locked or were moved, twice; they are left for the next run
	Stuck      Stop = "stuck"       // the database refuses to delete due rows
	Busy       Stop = "busy"        // another run holds the sweep
	Refused    Stop = "refused"     // the catalog disagrees with the policy; nothing was touched
	Failed     Stop = "failed"      // an error
	Signal     Stop = "signal"      // a signal
	NotReached Stop = "not_reached" // the run ended before its turn
	Planned    Stop = "planned"     // only planned
	Checked    Stop = "checked"     // only checked
	Counted    Stop = "counted"     // only counted, for a status
)

// Stops lists every reason.
func Stops() []Stop {
	return []Stop{Drained, Ceiling, Budget, Locked, Stuck, Busy, Refused, Failed, Signal, NotReached, Planned, Checked, Counted}
}

// StopBy is which of the bounds of a ceiling or a budget was reached; "" (null in JSON) for other reasons.
type StopBy string

// The bounds.
const (
	ByRows    StopBy = "rows"
	ByBatches StopBy = "batches"
	ByTime    StopBy = "time"
)

// MarshalJSON writes null for "".
func (b StopBy) MarshalJSON() ([]byte, error) {
	if b == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(b))
}

// Verdict is the result of a check.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Warning Verdict = "warning"
	Refuse  Verdict = "refused"
)
