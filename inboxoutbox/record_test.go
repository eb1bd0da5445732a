package inboxoutbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/inboxoutbox"
)

// all has another value than the default in each field.
var all = inboxoutbox.Settings{
	InboxWindow: 30 * day, OutboxWindow: 3 * day, CleanupInterval: 10 * time.Minute, Batch: 100,
	Replay: inboxoutbox.Replay{Redelivery: day, Manual: 14 * day, Remote: 3 * time.Hour},
}

// What databases have recorded must go on being recognised: these are constants.
func TestTheFingerprintIsStable(t *testing.T) {
	const text = `inbox_outbox settings
batch=100
cleanup_interval=600
inbox_window=2592000
outbox_window=259200
replay_window.manual=1209600
replay_window.redelivery=86400
replay_window.remote=10800
`
	if got := all.Fields().Canonical(); got != text {
		t.Errorf("canonical form\n%s", got)
	}
	for want, s := range map[string]inboxoutbox.Settings{
		"9e8bfaa110f6d4910229b1bf29de55f363d42ec3a7b7f47f3e60d6419ac5c97d": {},
		"f065406a4807fb5ea49a8a8f2ea0bc513be7d549d23a3a33ea3561037e01c003": all,
	} {
		if got := s.Fingerprint(); got != want {
			t.Errorf("fingerprint %s, want %s", got, want)
		}
	}
}

func TestEachSettingChangesTheFingerprint(t *testing.T) {
	seen := map[string]string{all.Fingerprint(): "the same"}
	for name := range all.Fields() {
		other := all.Fields()
		other[name]++
		s := other.Settings()
		if n, ok := seen[s.Fingerprint()]; ok {
			t.Errorf("%s and %s have one fingerprint", name, n)
		}
		seen[s.Fingerprint()] = name
		if d := all.Fields().Differences(s.Fields()); len(d) != 1 || d[0].Setting != name || d[0].Recorded == d[0].Given {
			t.Errorf("%s differs by %v", name, d)
		}
	}
	if len(seen) != 8 || all.Fields().Settings() != all {
		t.Errorf("%d fingerprints; %+v", len(seen), all.Fields().Settings())
	}
}

func TestADifferenceIsByField(t *testing.T) {
	recorded := all.Fields()
	recorded["later"] = 7 // of a newer program
	given := inboxoutbox.Settings{InboxWindow: 30 * day, OutboxWindow: 7 * day, Batch: 100, Replay: all.Replay}.Fields()
	delete(given, "replay_window.remote")
	want := `cleanup_interval: recorded 10min, given 1h
later: recorded 7, given not there
outbox_window: recorded 3d, given 7d
replay_window.remote: recorded 3h, given not there`
	var got []string
	for _, d := range recorded.Differences(given) {
		got = append(got, fmt.Sprint(d))
	}
	if strings.Join(got, "\n") != want {
		t.Errorf("differences\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if d := recorded.Differences(recorded); d != nil {
		t.Errorf("from itself by %v", d)
	}
}
