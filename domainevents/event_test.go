package domainevents_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/prunectl/prunectl/domainevents"
	"github.com/prunectl/prunectl/policy"
)

func TestAnOwnWindowIsOfWholeSecondsThatTheColumnHolds(t *testing.T) {
	for _, d := range []time.Duration{time.Second, time.Hour, domainevents.DefaultWindow * 3, math.MaxInt32 * time.Second} {
		r, err := domainevents.KeepFor(policy.MustWindow(d))
		if err != nil || time.Duration(r.OwnSeconds())*time.Second != d || r.Policy() != "" {
			t.Errorf("%s: %v, %v", d, r, err)
		}
	}
	for _, w := range []policy.Window{policy.Never, policy.AtOnce, {}, policy.MustWindow((math.MaxInt32 + 1) * time.Second), policy.MustWindow(policy.MaxWindow)} {
		if r, err := domainevents.KeepFor(w); !errors.Is(err, domainevents.ErrRetention) || r != domainevents.Default {
			t.Errorf("%s: %v, %v", w, r, err)
		}
	}
	// What is no whole number of seconds, zero or negative, is no window at all.
	for _, d := range []time.Duration{0, -time.Second, time.Second + 1, time.Millisecond} {
		if _, err := policy.NewWindow(d); err == nil {
			t.Errorf("%s is a window", d)
		}
	}
}

func TestARetentionSaysWhatItIs(t *testing.T) {
	own, err := domainevents.KeepFor(policy.MustWindow(36 * time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string]domainevents.Retention{
		"default": domainevents.Default, "36h": own, "SUCCEEDED": domainevents.UntilSucceeded, "SETTLED": domainevents.UntilSettled,
		"LATER": domainevents.StoredRetention("LATER", 0),
	} {
		if r.String() != want {
			t.Errorf("%s, want %s", r, want)
		}
	}
	if domainevents.StoredRetention("", 129600) != own || domainevents.StoredRetention("", 0) != (domainevents.Retention{}) ||
		domainevents.StoredRetention("SETTLED", 0) != domainevents.UntilSettled {
		t.Error("a stored retention is another than the declared one")
	}
}

func TestADraftThatCannotBeRecordedIsRefused(t *testing.T) {
	to := func(receivers ...string) (all []domainevents.Target) {
		for _, r := range receivers {
			all = append(all, domainevents.Target{Receiver: r})
		}
		return all
	}
	for name, c := range map[string]struct {
		draft   domainevents.Draft
		targets []domainevents.Target
		want    error
	}{
		"plain":               {domainevents.Draft{Type: "x"}, to("a", "b"), nil},
		"two targets of one":  {domainevents.Draft{Type: "x"}, []domainevents.Target{{Receiver: "a", Target: "1"}, {Receiver: "a", Target: "2"}}, nil},
		"suppressed":          {domainevents.Draft{Type: "x", Suppressed: "why"}, nil, nil},
		"key":                 {domainevents.Draft{Type: "x", DedupeKey: "k"}, nil, nil},
		"no type":             {domainevents.Draft{}, nil, domainevents.ErrEvent},
		"version":             {domainevents.Draft{Type: "x", Version: -1}, nil, domainevents.ErrEvent},
		"no JSON":             {domainevents.Draft{Type: "x", Payload: json.RawMessage(`{`)}, nil, domainevents.ErrEvent},
		"no receiver":         {domainevents.Draft{Type: "x"}, to("a", ""), domainevents.ErrEvent},
		"a target twice":      {domainevents.Draft{Type: "x"}, to("a", "b", "a"), domainevents.ErrEvent},
		"suppressed, targets": {domainevents.Draft{Type: "x", Suppressed: "why"}, to("a"), domainevents.ErrEvent},
		"key and SUCCEEDED":   {domainevents.Draft{Type: "x", DedupeKey: "k", Retention: domainevents.UntilSucceeded}, nil, domainevents.ErrDedupe},
		"key and SETTLED":     {domainevents.Draft{Type: "x", DedupeKey: "k", Retention: domainevents.UntilSettled}, nil, domainevents.ErrDedupe},
		"unknown policy":      {domainevents.Draft{Type: "x", Retention: domainevents.StoredRetention("LATER", 0)}, nil, domainevents.ErrRetention},
	} {
		if err := c.draft.Check(c.targets...); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
