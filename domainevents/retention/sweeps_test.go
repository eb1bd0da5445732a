package retention_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prunectl/prunectl/domainevents/retention"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/policy/policyfile"
)

var compare = cmp.Options{cmp.Comparer(func(a, b policy.Value) bool { return a == b }), cmp.Comparer(func(a, b policy.Window) bool { return a == b })}

// The sweeps are those of the ready policy, which people read and copy.
func TestTheSweepsAreThoseOfTheReadyPolicy(t *testing.T) {
	text, err := policyfile.Ready("domain_events")
	if err != nil {
		t.Fatal(err)
	}
	f, err := policyfile.Parse("domain_events.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(f.Sweeps, retention.Sweeps("", policy.Window{}), compare); d != "" {
		t.Error(d)
	}
}

func TestAWindowTakesThePlaceOfTheDefaultOneAlone(t *testing.T) {
	plain, other := retention.Sweeps("public", policy.Window{}), retention.Sweeps("public", policy.MustWindow(time.Hour))
	if other[0].Window != policy.MustWindow(time.Hour) {
		t.Errorf("the window is %s", other[0].Window)
	}
	other[0].Window = plain[0].Window
	if d := cmp.Diff(plain, other, compare); d != "" {
		t.Error(d)
	}
	for _, s := range retention.Sweeps(odd, policy.Window{}) {
		if s.Table.Schema != odd || s.Guard.Owed.Table.Schema != odd || s.Children[0].Table.Schema != odd {
			t.Errorf("sweep %s is of %s, %s and %s", s.Name, s.Table, s.Guard.Owed.Table, s.Children[0].Table)
		}
	}
}

func TestTheSweepsHaveNoProblems(t *testing.T) {
	for _, s := range retention.Sweeps("", policy.Window{}) {
		for _, p := range s.Problems() {
			t.Errorf("%s: %v", s.Name, p)
		}
	}
}
