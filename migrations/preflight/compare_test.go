package preflight

import (
	"slices"
	"testing"
)

// No component has a policy or a rule yet; a contract that has one is held to it.
func TestPoliciesAndRulesOfAContractAreCompared(t *testing.T) {
	with := func(policies, rules []definition) contract {
		return contract{Tables: []table{{Name: "t", Kind: "ordinary table", Policies: policies, Rules: rules}}}
	}
	want := with([]definition{{"p", "one"}}, []definition{{"r", "one"}})
	for name, c := range map[string]struct {
		have contract
		want []string
	}{
		"the same": {have: want},
		"missing":  {with(nil, nil), []string{"policy t.p: expected one, found nothing of this name", "rule t.r: expected one, found nothing of this name"}},
		"others": {with([]definition{{"p", "two"}}, []definition{{"r", "two"}}),
			[]string{"policy t.p, definition: expected one, found two", "rule t.r, definition: expected one, found two"}},
	} {
		found := comparison{schema: "s"}
		found.compare(want, c.have)
		var got []string
		for _, f := range found.findings {
			if f.Result != Refused || f.Do == "" {
				t.Errorf("%s: %s", name, f)
			}
			got = append(got, f.what())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
