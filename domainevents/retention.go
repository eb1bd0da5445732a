package domainevents

import (
	"fmt"
	"math"
	"time"

	"github.com/prunectl/prunectl/policy"
)

// DefaultWindow is how long an event is kept that has no window of its own, unless
// the sweep is told otherwise: 90 days. It is a default and no constant of nature.
const DefaultWindow = 90 * 24 * time.Hour

// MaxOwnWindow is the longest window that an event can have of its own: as many
// seconds as its column holds.
const MaxOwnWindow = math.MaxInt32 * time.Second

// Retention is the rule by which an event goes once nothing is owed on it. It is
// copied onto the event's row when it is recorded, and the sweep reads the row. The
// zero Retention is [Default].
type Retention struct {
	policy  Policy
	seconds int32
}

var (
	// Default keeps an event for the default window after it was recorded.
	Default = Retention{}
	// UntilSucceeded is the retention of [PolicySucceeded].
	UntilSucceeded = Retention{policy: PolicySucceeded}
	// UntilSettled is the retention of [PolicySettled].
	UntilSettled = Retention{policy: PolicySettled}
)

// KeepFor keeps an event for a window of its own after it was recorded, shorter or
// longer than the default one. It refuses a window that is not from 1 second to
// [MaxOwnWindow]: never and at once are none.
func KeepFor(w policy.Window) (Retention, error) {
	if w.IsNever() || w.IsAtOnce() || w.Duration() > MaxOwnWindow {
		return Retention{}, fmt.Errorf("%w: an event's own window is from 1 to %d seconds, not %s", ErrRetention, math.MaxInt32, w)
	}
	return Retention{seconds: int32(w.Seconds())}, nil
}

// StoredRetention is the retention in the columns of a row, for adapters: the word of
// a policy, which need not be a known one, and the seconds of an own window; "" and 0
// stand for null.
func StoredRetention(word Policy, seconds int32) Retention {
	return Retention{policy: word, seconds: seconds}
}

// Policy is the word that is written on the event's row, "" for none. Read from a row
// it may be unknown; then the event goes by the default window.
func (r Retention) Policy() Policy { return r.policy }

// OwnSeconds is the event's own window in seconds, 0 for none.
func (r Retention) OwnSeconds() int32 { return r.seconds }

// String is the retention in a word: "default", "36h", "SUCCEEDED".
func (r Retention) String() string {
	switch {
	case r.seconds > 0:
		return policy.FormatDuration(time.Duration(r.seconds) * time.Second)
	case r.policy != "":
		return string(r.policy)
	}
	return "default"
}
