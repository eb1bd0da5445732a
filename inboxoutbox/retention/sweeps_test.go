package retention_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/inboxoutbox/retention"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/policy/policyfile"
)

var compare = cmp.Options{cmp.Comparer(func(a, b policy.Value) bool { return a == b }), cmp.Comparer(func(a, b policy.Window) bool { return a == b })}

// The sweeps are those of the ready policy, which people read and copy.
func TestTheSweepsAreThoseOfTheReadyPolicy(t *testing.T) {
	text, err := policyfile.Ready("inbox_outbox")
	must(t, err)
	f, err := policyfile.Parse("inbox_outbox.yaml", text)
	must(t, err)
	if d := cmp.Diff(f.Sweeps, retention.Sweeps("", inboxoutbox.Settings{}), compare); d != "" {
		t.Error(d)
	}
}

func TestEachSettingReachesItsSweep(t *testing.T) {
	given := inboxoutbox.Settings{InboxWindow: time.Hour, OutboxWindow: 2 * time.Hour, Batch: 100}
	other := retention.Sweeps(odd, given)
	if other[0].Window != policy.MustWindow(time.Hour) || other[1].Window != policy.MustWindow(2*time.Hour) || other[2].Window != policy.AtOnce {
		t.Errorf("windows %s, %s, %s", other[0].Window, other[1].Window, other[2].Window)
	}
	for i, plain := range retention.Sweeps("", inboxoutbox.Settings{}) {
		s := other[i]
		if s.Table.Schema != odd || s.Batch.Limit != 100 {
			t.Errorf("sweep %s is of %s with a batch of %d", s.Name, s.Table, s.Batch.Limit)
		}
		s.Table.Schema, s.Window, s.Batch = plain.Table.Schema, plain.Window, plain.Batch
		if d := cmp.Diff(plain, s, compare); d != "" {
			t.Error(d)
		}
		for _, p := range s.Problems() {
			t.Errorf("%s: %v", s.Name, p)
		}
	}
}
