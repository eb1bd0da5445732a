package connectionstest

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/prunectl/prunectl/connections"
)

var inputChecks = []Check{{"what can not be used is refused", inputIsRefused}}

func inputIsRefused(ctx context.Context, s connections.Store) error {
	var p problems
	if err := create(ctx, s, draft("t", "c")); err != nil {
		return err
	}
	texts := []string{"", " ", "\t\n", "\u00a0", "a\x00", "\xff", strings.Repeat("x", connections.MaxText+1)}
	for _, bad := range texts {
		for what, change := range map[string]func(*connections.Draft){
			"tenant": func(d *connections.Draft) { d.Tenant = bad },
			"id":     func(d *connections.Draft) { d.ID = bad },
			"kind":   func(d *connections.Draft) { d.Kind = bad },
			"name":   func(d *connections.Draft) { d.Name = bad },
		} {
			if d := draft("t", "d"); what != "id" || bad != "" { // no id is one to make
				change(&d)
				_, err := s.Create(ctx, d)
				p.is(err, connections.ErrInput, "create with the %s %.20q", what, bad)
			}
		}
		ok := "a name"
		_, err := s.List(ctx, bad, connections.Page{})
		p.is(err, connections.ErrInput, "list tenant %.20q", bad)
		_, err = s.Purge(ctx, bad)
		p.is(err, connections.ErrInput, "purge tenant %.20q", bad)
		for _, key := range [][2]string{{bad, "c"}, {"t", bad}} {
			_, err = s.Get(ctx, key[0], key[1])
			p.is(err, connections.ErrInput, "get %.20q", key)
			_, err = s.Update(ctx, key[0], key[1], connections.Change{Name: &ok})
			p.is(err, connections.ErrInput, "update %.20q", key)
			_, err = s.Revoke(ctx, key[0], key[1])
			p.is(err, connections.ErrInput, "revoke %.20q", key)
		}
		_, err = s.Update(ctx, "t", "c", connections.Change{Name: &bad})
		p.is(err, connections.ErrInput, "update to the name %.20q", bad)
	}
	for _, bad := range []json.RawMessage{
		[]byte(`{`), []byte(`[]`), []byte(`"x"`), []byte(`null`), []byte(`{} {}`), []byte(`{"a": "\u0000"}`), []byte(`{"a": ["\u0000"]}`), []byte(`{"a\u0000": 1}`),
		[]byte("{\"a\": \"\xff\"}"), []byte(`{"a": "` + strings.Repeat("x", connections.MaxSettings) + `"}`),
	} {
		d := draft("t", "d")
		d.Settings = bad
		_, err := s.Create(ctx, d)
		p.is(err, connections.ErrInput, "create with the settings %.20q", bad)
		_, err = s.Update(ctx, "t", "c", connections.Change{Settings: bad})
		p.is(err, connections.ErrInput, "update to the settings %.20q", bad)
	}
	large := connections.NewSecret(make([]byte, connections.MaxSecret+1))
	d := draft("t", "d")
	d.Secret = large
	_, err := s.Create(ctx, d)
	p.is(err, connections.ErrInput, "create with a large secret")
	_, err = s.Update(ctx, "t", "c", connections.Change{Secret: &large})
	p.is(err, connections.ErrInput, "update to a large secret")
	_, err = s.Update(ctx, "t", "c", connections.Change{})
	p.is(err, connections.ErrInput, "update nothing")
	_, err = s.Update(ctx, "t", "c", connections.Change{Settings: json.RawMessage{}})
	p.is(err, connections.ErrInput, "update to empty settings")

	p.holds(ctx, s, "t", "c")
	got, err := s.Get(ctx, "t", "c")
	p.is(err, nil, "get")
	if want := draft("t", "c"); got.Name != want.Name || !got.Secret.Equal(want.Secret) || !got.Updated.Equal(got.Created) {
		p.add("it was changed")
	}
	return p.err()
}
