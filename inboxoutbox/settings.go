package inboxoutbox

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/prunectl/prunectl/policy"
)

// The defaults and bounds of Settings. Each is a choice, not a constant of nature.
const (
	DefaultWindow   = 7 * 24 * time.Hour
	DefaultInterval = time.Hour
	MinWindow       = time.Second
	MaxWindow       = 365 * 24 * time.Hour
	MinInterval     = time.Second
	MaxInterval     = 24 * time.Hour
)

// Settings is the policy of one inbox and outbox. All times are whole seconds. Zero
// fields mean their documented defaults, so that the zero Settings are of use.
type Settings struct {
	// InboxWindow is how long a completed inbox row is kept, and so for how long the
	// same event is recognised; zero: DefaultWindow.
	InboxWindow time.Duration
	// OutboxWindow is how long a delivered outbox record is kept; zero: DefaultWindow.
	OutboxWindow time.Duration
	// CleanupInterval is the time between two cleanups; zero: DefaultInterval. It is
	// never longer than either window.
	CleanupInterval time.Duration
	// Batch is how many rows one transaction looks at, at most; zero: policy.DefaultLimit.
	Batch int
	// Replay says how late the same event can come again.
	Replay Replay
}

// Replay is how late an event can come again, by each way: the inbox window has to be at
// least the longest. Zero: not declared.
type Replay struct {
	Redelivery time.Duration // by the broker, which delivers again what was not acknowledged
	Manual     time.Duration // by people, who play old events again
	Remote     time.Duration // by the sender, who tries again what looked as if it had failed
}

// WithDefaults is s with every zero field replaced by its documented default.
func (s Settings) WithDefaults() Settings {
	s.InboxWindow = cmp.Or(s.InboxWindow, DefaultWindow)
	s.OutboxWindow = cmp.Or(s.OutboxWindow, DefaultWindow)
	s.CleanupInterval = cmp.Or(s.CleanupInterval, DefaultInterval)
	s.Batch = cmp.Or(s.Batch, policy.DefaultLimit)
	return s
}

// Problem is one fault of Settings.
type Problem struct {
	Setting string // its name, as the fields of a recorded policy have it
	Value   string
	Range   string // what it has to be within
	Reason  string // why, where the range does not say it
}

func (p Problem) String() string {
	text := fmt.Sprintf("%s is %s; it is %s", p.Setting, p.Value, p.Range)
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// Problems returns all that is wrong with the settings, none where they are usable. They are
// checked together, as they hold: with defaults in place of zero fields.
func (s Settings) Problems() []Problem {
	s = s.WithDefaults()
	var all []Problem
	span := func(setting string, d, from, to time.Duration) (ok bool) {
		switch bounds := fmt.Sprintf("from %s to %s", spoken(from), spoken(to)); {
		case d < from || d > to:
			all = append(all, Problem{Setting: setting, Value: spoken(d), Range: bounds})
		case d%time.Second != 0:
			all = append(all, Problem{Setting: setting, Value: spoken(d), Range: bounds, Reason: "it has to be of whole seconds"})
		default:
			return true
		}
		return false
	}
	inbox := span(inboxWindow, s.InboxWindow, MinWindow, MaxWindow)
	outbox := span(outboxWindow, s.OutboxWindow, MinWindow, MaxWindow)
	if span(cleanupInterval, s.CleanupInterval, MinInterval, MaxInterval) {
		longest := MaxInterval
		var by []string
		for _, w := range []struct {
			name  string
			ok    bool
			value time.Duration
		}{{inboxWindow, inbox, s.InboxWindow}, {outboxWindow, outbox, s.OutboxWindow}} {
			if w.ok && s.CleanupInterval > w.value {
				longest = min(longest, w.value)
				by = append(by, fmt.Sprintf("%s is %s", w.name, spoken(w.value)))
			}
		}
		if by != nil {
			all = append(all, Problem{
				Setting: cleanupInterval, Value: spoken(s.CleanupInterval), Range: fmt.Sprintf("from %s to %s here", spoken(MinInterval), spoken(longest)),
				Reason: strings.Join(by, " and ") + ", and rows would stay for longer than their window after it has passed",
			})
		}
	}
	if s.Batch < 1 || s.Batch > policy.MaxLimit {
		all = append(all, Problem{Setting: batch, Value: fmt.Sprint(s.Batch), Range: fmt.Sprintf("from 1 to %d", policy.MaxLimit)})
	}
	for _, r := range []struct {
		name  string
		value time.Duration
	}{{replayRedelivery, s.Replay.Redelivery}, {replayManual, s.Replay.Manual}, {replayRemote, s.Replay.Remote}} {
		if span(r.name, r.value, 0, MaxWindow) && inbox && r.value > s.InboxWindow {
			all = append(all, Problem{
				Setting: inboxWindow, Value: spoken(s.InboxWindow), Range: fmt.Sprintf("from %s to %s here", spoken(s.Replay.longest()), spoken(MaxWindow)),
				Reason: fmt.Sprintf("%s is %s, and a removed inbox row lets the same event in again as new", r.name, spoken(r.value)),
			})
		}
	}
	return all
}

// longest is the longest of what is declared and usable.
func (r Replay) longest() time.Duration {
	var d time.Duration
	for _, way := range []time.Duration{r.Redelivery, r.Manual, r.Remote} {
		if way <= MaxWindow {
			d = max(d, way)
		}
	}
	return d
}

// Check is an error with all the problems of the settings, one a line, nil where there are
// none: [ErrSettings].
func (s Settings) Check() error {
	ps := s.Problems()
	if len(ps) == 0 {
		return nil
	}
	var lines []string
	for _, p := range ps {
		lines = append(lines, p.String())
	}
	return fmt.Errorf("%w: %s", ErrSettings, strings.Join(lines, "\n"))
}

// spoken is a duration as the settings' names and the policy files have it, where it is one
// of theirs.
func spoken(d time.Duration) string {
	if d < time.Second || d%time.Second != 0 {
		return d.String()
	}
	return policy.FormatDuration(d)
}
