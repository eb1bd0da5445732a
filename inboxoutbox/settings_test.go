package inboxoutbox_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/inboxoutbox"
)

const day = 24 * time.Hour

func TestTheZeroSettingsAreTheDocumentedDefaults(t *testing.T) {
	want := inboxoutbox.Settings{InboxWindow: 7 * day, OutboxWindow: 7 * day, CleanupInterval: time.Hour, Batch: 5000}
	var zero inboxoutbox.Settings
	if got := zero.WithDefaults(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := zero.Check(); err != nil {
		t.Error(err)
	}
	if zero.Fingerprint() != want.Fingerprint() {
		t.Error("the defaults have another fingerprint than the zero settings")
	}
}

// Each problem names the setting, its value and the range, and all come at once.
func TestTheSettingsAreCheckedTogether(t *testing.T) {
	type s = inboxoutbox.Settings
	type r = inboxoutbox.Replay
	replay := func(text string) string {
		return text + ", and a removed inbox row lets the same event in again as new"
	}
	for _, c := range []struct {
		settings s
		want     []string
	}{
		{s{InboxWindow: time.Second, OutboxWindow: time.Second, CleanupInterval: time.Second, Batch: 1}, nil},
		{s{InboxWindow: 365 * day, OutboxWindow: 365 * day, CleanupInterval: day, Batch: 100_000, Replay: r{365 * day, 365 * day, 365 * day}}, nil},
		{s{InboxWindow: day, OutboxWindow: day, CleanupInterval: day}, nil},
		{s{InboxWindow: -time.Second}, []string{"inbox_window is -1s; it is from 1s to 365d"}},
		{s{InboxWindow: 365*day + time.Second}, []string{"inbox_window is 31536001s; it is from 1s to 365d"}},
		{s{InboxWindow: 999 * time.Millisecond}, []string{"inbox_window is 999ms; it is from 1s to 365d"}},
		{s{InboxWindow: day + time.Millisecond}, []string{"inbox_window is 24h0m0.001s; it is from 1s to 365d: it has to be of whole seconds"}},
		{s{OutboxWindow: 366 * day}, []string{"outbox_window is 366d; it is from 1s to 365d"}},
		{s{OutboxWindow: -1}, []string{"outbox_window is -1ns; it is from 1s to 365d"}},
		{s{CleanupInterval: -time.Hour}, []string{"cleanup_interval is -1h0m0s; it is from 1s to 1d"}},
		{s{CleanupInterval: day + time.Second}, []string{"cleanup_interval is 86401s; it is from 1s to 1d"}},
		{s{CleanupInterval: 1500 * time.Millisecond}, []string{"cleanup_interval is 1.5s; it is from 1s to 1d: it has to be of whole seconds"}},
		{s{InboxWindow: 30 * time.Minute}, []string{
			"cleanup_interval is 1h; it is from 1s to 30min here: inbox_window is 30min, and rows would stay for longer than their window after it has passed",
		}},
		{s{InboxWindow: 3 * time.Hour, OutboxWindow: 2 * time.Hour, CleanupInterval: 4 * time.Hour}, []string{
			"cleanup_interval is 4h; it is from 1s to 2h here: inbox_window is 3h and outbox_window is 2h, and rows would stay for longer than their window after it has passed",
		}},
		{s{InboxWindow: 2 * time.Hour, OutboxWindow: 3 * time.Hour, CleanupInterval: 4 * time.Hour}, []string{
			"cleanup_interval is 4h; it is from 1s to 2h here: inbox_window is 2h and outbox_window is 3h, and rows would stay for longer than their window after it has passed",
		}},
		{s{Batch: -1}, []string{"batch is -1; it is from 1 to 100000"}},
		{s{Batch: 100_001}, []string{"batch is 100001; it is from 1 to 100000"}},
		{s{Replay: r{Redelivery: 7 * day, Manual: 7 * day, Remote: 7 * day}}, nil},
		{s{Replay: r{Redelivery: 8 * day}}, []string{replay("inbox_window is 7d; it is from 8d to 365d here: replay_window.redelivery is 8d")}},
		{s{Replay: r{Manual: 7*day + time.Second, Remote: 30 * day}}, []string{
			replay("inbox_window is 7d; it is from 30d to 365d here: replay_window.manual is 604801s"),
			replay("inbox_window is 7d; it is from 30d to 365d here: replay_window.remote is 30d"),
		}},
		{s{OutboxWindow: time.Hour, Replay: r{Manual: day}}, nil}, // the outbox lets nothing in
		{s{Replay: r{Redelivery: -1, Remote: 366 * day}}, []string{
			"replay_window.redelivery is -1ns; it is from 0s to 365d", "replay_window.remote is 366d; it is from 0s to 365d",
		}},
		{s{InboxWindow: -1, OutboxWindow: -1, CleanupInterval: -1, Batch: -1, Replay: r{-1, -1, -1}}, []string{
			"inbox_window is -1ns; it is from 1s to 365d", "outbox_window is -1ns; it is from 1s to 365d", "cleanup_interval is -1ns; it is from 1s to 1d",
			"batch is -1; it is from 1 to 100000", "replay_window.redelivery is -1ns; it is from 0s to 365d",
			"replay_window.manual is -1ns; it is from 0s to 365d", "replay_window.remote is -1ns; it is from 0s to 365d",
		}},
	} {
		var got []string
		for _, p := range c.settings.Problems() {
			got = append(got, p.String())
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%+v:\n%s\nwant\n%s", c.settings, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		err := c.settings.Check()
		if (err == nil) != (c.want == nil) || err != nil && (!errors.Is(err, inboxoutbox.ErrSettings) || err.Error() != "unusable settings: "+strings.Join(c.want, "\n")) {
			t.Errorf("%+v: %v", c.settings, err)
		}
	}
}
