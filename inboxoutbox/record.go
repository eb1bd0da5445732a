package inboxoutbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The names of the settings, wherever they are written: in what a database records, in
// errors and in differences.
const (
	inboxWindow      = "inbox_window"
	outboxWindow     = "outbox_window"
	cleanupInterval  = "cleanup_interval"
	batch            = "batch"
	replayRedelivery = "replay_window.redelivery"
	replayManual     = "replay_window.manual"
	replayRemote     = "replay_window.remote"
)

// Fields are settings as a database records them: each by its name, times in seconds. A
// newer program may have recorded names that this one does not know.
type Fields map[string]int64

// field is one of the settings.
type field struct {
	name    string
	seconds *time.Duration // one of them is nil
	number  *int
}

func (s *Settings) fields() []field {
	return []field{
		{inboxWindow, &s.InboxWindow, nil},
		{outboxWindow, &s.OutboxWindow, nil},
		{cleanupInterval, &s.CleanupInterval, nil},
		{batch, nil, &s.Batch},
		{replayRedelivery, &s.Replay.Redelivery, nil},
		{replayManual, &s.Replay.Manual, nil},
		{replayRemote, &s.Replay.Remote, nil},
	}
}

// Fields are the settings as they hold: with defaults in place of zero fields.
func (s Settings) Fields() Fields {
	s = s.WithDefaults()
	all := Fields{}
	for _, f := range s.fields() {
		if f.number != nil {
			all[f.name] = int64(*f.number)
		} else {
			all[f.name] = int64(*f.seconds / time.Second)
		}
	}
	return all
}

// Settings are those that the fields are of. What is not there is zero.
func (f Fields) Settings() Settings {
	var s Settings
	for _, to := range s.fields() {
		if to.number != nil {
			*to.number = int(f[to.name])
		} else {
			*to.seconds = time.Duration(f[to.name]) * time.Second
		}
	}
	return s
}

// Fingerprint is what settings are recognised by: equal for those that hold equally, and
// different for others. It is the SHA-256 of [Fields.Canonical], in hexadecimal.
func (s Settings) Fingerprint() string { return s.Fields().Fingerprint() }

// Fingerprint is the SHA-256 of Canonical, in hexadecimal.
func (f Fields) Fingerprint() string {
	sum := sha256.Sum256([]byte(f.Canonical()))
	return hex.EncodeToString(sum[:])
}

// Canonical is the text of the fields that is the same everywhere: a line for each, name=value,
// in the order of names, after a line that says what it is.
func (f Fields) Canonical() string {
	var b strings.Builder
	b.WriteString("inbox_outbox settings\n")
	for _, name := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(&b, "%s=%d\n", name, f[name])
	}
	return b.String()
}

// Difference is a setting that differs between what is recorded and what is given.
type Difference struct {
	Setting         string
	Recorded, Given string // "" where it is not there
}

func (d Difference) String() string {
	say := func(v string) string {
		if v == "" {
			return "not there"
		}
		return v
	}
	return fmt.Sprintf("%s: recorded %s, given %s", d.Setting, say(d.Recorded), say(d.Given))
}

// Differences are the settings that differ between f, which is recorded, and given, in the
// order of their names.
func (f Fields) Differences(given Fields) []Difference {
	names := slices.Collect(maps.Keys(f))
	for name := range given {
		if _, ok := f[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var all []Difference
	for _, name := range names {
		if r, g := f.say(name), given.say(name); r != g {
			all = append(all, Difference{name, r, g})
		}
	}
	return all
}

// say is the value of a field for people.
func (f Fields) say(name string) string {
	v, ok := f[name]
	if !ok {
		return ""
	}
	for _, known := range new(Settings).fields() {
		if known.name == name && known.seconds != nil {
			return spoken(time.Duration(v) * time.Second)
		}
	}
	return fmt.Sprint(v)
}
