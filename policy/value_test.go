package policy_test

import (
	"testing"

	"github.com/prunectl/prunectl/policy"
)

func TestValues(t *testing.T) {
	for _, c := range []struct {
		v    policy.Value
		kind policy.Kind
		text string
	}{
		{policy.Value{}, policy.KindNull, "null"}, {policy.Null, policy.KindNull, "null"}, {policy.Text("null"), policy.KindText, "null"},
		{policy.Text(""), policy.KindText, ""}, {policy.Int(-7), policy.KindInt, "-7"}, {policy.Bool(true), policy.KindBool, "true"},
	} {
		if c.v.Kind() != c.kind || c.v.String() != c.text || c.v.IsNull() != (c.kind == policy.KindNull) {
			t.Errorf("%v: kind %d, text %q, null %t", c, c.v.Kind(), c.v.String(), c.v.IsNull())
		}
	}
	if policy.Text("null") == policy.Null || policy.Text("1") == policy.Int(1) {
		t.Error("values of two kinds are equal")
	}
	if got := policy.JoinValues([]policy.Value{policy.Text("a"), policy.Int(1), policy.Null}); got != "a, 1, null" {
		t.Errorf("joined: %q", got)
	}
}

func TestMatch(t *testing.T) {
	a, b := policy.Text("a"), policy.Text("b")
	one, some, null := []policy.Value{a}, []policy.Value{a, policy.Null}, []policy.Value{policy.Null}
	for _, c := range []struct {
		name    string
		m       policy.Match
		matches map[policy.Value]bool
		scalar  bool
	}{
		{"one value", policy.Match{Values: one}, map[policy.Value]bool{a: true, b: false, policy.Null: false}, true},
		{"null", policy.Match{Values: null}, map[policy.Value]bool{a: false, policy.Null: true}, false},
		{"a value or null", policy.Match{Values: some}, map[policy.Value]bool{a: true, b: false, policy.Null: true}, false},
		{"not a value, null passes", policy.Match{Values: one, Not: true}, map[policy.Value]bool{a: false, b: true, policy.Null: true}, false},
		{"not null", policy.Match{Values: null, Not: true}, map[policy.Value]bool{a: true, policy.Null: false}, false},
		{"neither a value nor null", policy.Match{Values: some, Not: true}, map[policy.Value]bool{a: false, b: true, policy.Null: false}, false},
		{"nothing", policy.Match{}, map[policy.Value]bool{a: false, policy.Null: false}, false},
	} {
		for v, want := range c.matches {
			if got := c.m.Matches(v); got != want {
				t.Errorf("%s: %s matches: %t", c.name, v, got)
			}
		}
		if got := c.m.Scalar(); got != c.scalar {
			t.Errorf("%s: scalar %t", c.name, got)
		}
	}
}

func TestLets(t *testing.T) {
	s := policy.StateGuard{Terminal: []policy.Value{policy.Text("done"), policy.Null}}
	o := policy.OwnerGuard{Terminal: s.Terminal}
	for v, want := range map[policy.Value]bool{policy.Text("done"): true, policy.Text("Done"): false, policy.Text(""): false, policy.Null: false} {
		if s.Lets(v) != want || o.Lets(v) != want {
			t.Errorf("%s lets go: %t, %t; want %t", v, s.Lets(v), o.Lets(v), want)
		}
	}
	if (&policy.StateGuard{}).Lets(policy.Text("done")) || (&policy.OwnerGuard{}).Lets(policy.Text("done")) {
		t.Error("a guard without terminal states lets go")
	}
}

func TestNameString(t *testing.T) {
	for want, n := range map[string]policy.Name{"public.jobs": {Schema: "public", Table: "jobs"}, "jobs": {Table: "jobs"}, "": {}} {
		if n.String() != want || n.IsZero() != (want == "") {
			t.Errorf("%q, zero %t; want %q", n.String(), n.IsZero(), want)
		}
	}
}
