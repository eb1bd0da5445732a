package explaintest

import (
	"strings"
	"testing"
)

// TestBounds reads conditions as servers print them.
func TestBounds(t *testing.T) {
	for cond, want := range map[string]string{
		``:                                      ``,
		`(created_at < $1)`:                     `created_at<`,
		`(e.created_at < (InitPlan 1).col1)`:    `created_at<`,
		`(created_at = $0)`:                     `created_at=`,
		`((a = 1) AND (b >= $2) AND (b <= $3))`: `a= b> b<`,
		`(state = ANY ('{done,failed}'::text[]))`:          `state=`,
		`((name)::text = 'x'::text)`:                       `( name ) :: text|name=`,
		`((name)::text = 'it''s) AND (b = 1'::text)`:       `( name ) :: text|name=`,
		`(name = E'a\\'' AND (b = 1)')`:                    `name=`,
		`(("order" = 1) AND ("created""At" > 'x'))`:        `order= created"At>`,
		`(d."createdAt" < now())`:                          `createdAt<`,
		`(x IS NULL)`:                                      `x=`,
		`(x IS NOT NULL)`:                                  `x?`,
		`(ROW(e.created_at, e.id) >= ROW($1, $2))`:         `created_at,id>`,
		`(lower(e.name) = 'x'::text)`:                      `lower ( name )=`,
		`(((x."Id" + 1)) < 7)`:                             `"Id" + 1<`,
		`(public.f(e.x) = 1)`:                              `public . f ( x )=`,
		`((path ~>=~ 'a'::text) AND (path ~<~ 'b'::text))`: `path> path<`,
		`(tags @> '{a}'::text[])`:                          `tags?`,
		`(id OPERATOR(public.=) 3)`:                        `id=`,
		`((name)::text COLLATE "C" > 'x')`:                 `( name ) :: text COLLATE "C"|( name ) :: text|name>`,
		`(a[1] = 2)`:                                       `a [ 1 ]=`,
		`((a = 1) AND ((b)::timestamp with time zone < '2026-01-01'::timestamptz))`: `a= ( b ) :: timestamp with time zone|b<`,
	} {
		var got []string
		for _, b := range bounds(cond) {
			var keys []string
			for _, k := range b.keys {
				keys = append(keys, strings.Join(k, "|"))
			}
			got = append(got, strings.Join(keys, ",")+[]string{"?", "=", ">", "<"}[b.kind])
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s is read as %q; want %q", cond, s, want)
		}
	}
	// An expression whose end is a cast must not be taken for what stands before it.
	b := bounds(`((recorded_at AT TIME ZONE 'UTC'::text) < $1)`)
	if len(b) != 1 || b[0].keys[0][0] != key(`(recorded_at AT TIME ZONE 'UTC'::text)`) {
		t.Errorf("an expression is read as %+v", b)
	}
}

// TestBounded holds which conditions bound an index, and at which of its columns.
func TestBounded(t *testing.T) {
	x := Index{Columns: []string{"state", "created_at", "id"}}
	for _, c := range []struct {
		cond, on string
		both     bool
		method   string
		says     string // empty: bounded
	}{
		{cond: `(state = 'x')`, on: "state"},
		{cond: `(state = 'x')`, on: "state", both: true},
		{cond: `(state > 'x')`, on: "state"},
		{cond: `(state > 'x')`, on: "state", both: true, says: "no upper bound"},
		{cond: `(state < 'x')`, on: "state", both: true, says: "no lower bound"},
		{cond: `(state IS NOT NULL)`, on: "state", says: "does not bound state"},
		{cond: `(created_at < $1)`, on: "created_at", says: "bounds nothing, since state"},
		{cond: `((state > 'a') AND (created_at < $1))`, on: "created_at", says: "bounds nothing, since state"},
		{cond: `((state = 'a') AND (created_at < $1))`, on: "created_at"},
		{cond: `((created_at < $1) AND (state = 'a'))`, on: "created_at"},
		{cond: `((state = ANY ($1)) AND (created_at < $2) AND (created_at >= $3))`, on: "created_at", both: true},
		{cond: `((state IS NULL) AND (created_at < $2))`, on: "created_at"},
		{cond: `((state = 'a') AND (id = 4))`, on: "id", says: "since created_at"},
		{cond: `((state = 'a') AND (ROW(created_at, id) > ROW($1, $2)))`, on: "created_at"},
		{cond: `((state = 'a') AND (ROW(created_at, id) > ROW($1, $2)))`, on: "id", says: "does not bound id"},
		{cond: `((state = 'a') AND (created_at = $1) AND (ROW(created_at, id) > ROW($1, $2)))`, on: "id"},
		{cond: `(ROW(created_at, id) > ROW($1, $2))`, on: "created_at", says: "since state"},
		{cond: `(state = 'a')`, on: "nothing", says: "has no column nothing"},
		{cond: `(id @> 'a')`, on: "id", method: "gin"},
		{cond: `(id @> 'a')`, on: "state", method: "gin", says: "has nothing on state"},
	} {
		x.Method = c.method
		problem, look := x.bounded(bounds(c.cond), wanted{c.on, c.both})
		if (problem == "") != (c.says == "") || !strings.Contains(problem, c.says) {
			t.Errorf("%s on %s, both ends %t: %q; want %q", c.cond, c.on, c.both, problem, c.says)
		}
		if problem != "" && look == "" {
			t.Errorf("%s on %s: nothing to look at", c.cond, c.on)
		}
	}
}

func TestNames(t *testing.T) {
	for text, want := range map[string]Name{
		"events":                       {"", "events"},
		"Public.Events":                {"Public", "Events"},
		`"Audit.Log"."Run ""Events"""`: {"Audit.Log", `Run "Events"`},
		`"a.b"`:                        {"", "a.b"},
		``:                             {},
	} {
		if got := ParseName(text); got != want {
			t.Errorf("%s is %+v; want %+v", text, got, want)
		}
	}
	for want, names := range map[string][2]string{"d": {"d", "d_12"}, "d_1": {"d_1", "d_1_2"}} {
		for _, is := range names {
			if !sameAlias(want, is) {
				t.Errorf("the alias %s is not taken for %s", is, want)
			}
		}
	}
	for _, is := range []string{"e", "d2", "d_x", "d_", ""} {
		if sameAlias("d", is) {
			t.Errorf("the alias %s is taken for d", is)
		}
	}
}
