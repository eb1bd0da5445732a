package connectionstest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/prunectl/prunectl/connections"
)

var keepChecks = []Check{
	{"what is created is got", createdIsGot},
	{"an id is made where none is given", idIsMade},
	{"an id is given once", idIsGivenOnce},
	{"of many who create one connection one does", oneCreates},
	{"an update changes what is given", updateChanges},
	{"what is kept is a copy", keptIsCopy},
	{"a call whose context has ended does nothing", endedContext},
}

// same holds that two connections are one, their settings by what they say.
func (p *problems) same(what string, got, want connections.Connection) {
	var a, b any
	if err := decode(got.Settings, &a); err != nil {
		p.add("%s: the settings %s: %w", what, got.Settings, err)
	}
	_ = decode(want.Settings, &b) // its own, which are right
	if !reflect.DeepEqual(a, b) {
		p.add("%s: settings %s, want %s", what, got.Settings, want.Settings)
	}
	if !got.Secret.Equal(want.Secret) {
		p.add("%s: it has not the secret that is meant: %d bytes, want %d", what, got.Secret.Len(), want.Secret.Len())
	}
	for _, at := range []time.Time{got.Created, got.Updated} {
		if at.IsZero() || at.Location() != time.UTC || at.Nanosecond()%1000 != 0 {
			p.add("%s: the time %s is not in UTC and whole microseconds", what, at)
		}
	}
	if !got.Created.Equal(want.Created) || !got.Updated.Equal(want.Updated) {
		p.add("%s: created %s and updated %s, want %s and %s", what, got.Created, got.Updated, want.Created, want.Updated)
	}
	if got.Tenant != want.Tenant || got.ID != want.ID || got.Kind != want.Kind || got.Name != want.Name {
		p.add("%s: %q, want %q", what, []string{got.Tenant, got.ID, got.Kind, got.Name}, []string{want.Tenant, want.ID, want.Kind, want.Name})
	}
}

func decode(j json.RawMessage, v any) error {
	d := json.NewDecoder(bytes.NewReader(j))
	d.UseNumber()
	return d.Decode(v)
}

func createdIsGot(ctx context.Context, s connections.Store) error {
	var p problems
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	long := strings.Repeat("é", connections.MaxText/2)
	for i, d := range []connections.Draft{
		draft("t", "plain"),
		{Tenant: "t", ID: "bare", Kind: "k", Name: "n"},
		{Tenant: long, ID: long, Kind: long, Name: long, Secret: connections.NewSecret(bytes.Repeat([]byte("x"), connections.MaxSecret))},
		{Tenant: "t", ID: "bytes", Kind: `k'"\$1`, Name: " n\t\n", Secret: connections.NewSecret(everyByte), Settings: []byte(`{"a": {"b": [1, null, true, "\u00e9 \\u0000 '\""]}, "": 9007199254740993, "n": 0.10}`)},
	} {
		made, err := s.Create(ctx, d)
		p.is(err, nil, "create number %d", i)
		got, err := s.Get(ctx, d.Tenant, d.ID)
		p.is(err, nil, "get number %d", i)
		d = d.WithDefaults()
		want := connections.Connection{Tenant: d.Tenant, ID: d.ID, Kind: d.Kind, Name: d.Name, Settings: d.Settings, Secret: d.Secret, Created: made.Created, Updated: made.Created}
		p.same(fmt.Sprintf("number %d, got", i), got, want)
		want.Secret = connections.Secret{}
		p.same(fmt.Sprintf("number %d, created", i), made, want)
	}
	_, err := s.Get(ctx, "t", "unknown")
	p.is(err, connections.ErrNotFound, "get an unknown one")
	return p.err()
}

func idIsMade(ctx context.Context, s connections.Store) error {
	var p problems
	a, err := s.Create(ctx, draft("t", ""))
	p.is(err, nil, "create")
	b, err := s.Create(ctx, draft("t", ""))
	p.is(err, nil, "create another")
	if len(a.ID) != 36 || a.ID[14] != '4' || a.ID == b.ID {
		p.add("the ids are %q and %q, want two UUIDs", a.ID, b.ID)
	}
	p.holds(ctx, s, "t", a.ID, b.ID)
	return p.err()
}

func idIsGivenOnce(ctx context.Context, s connections.Store) error {
	var p problems
	first, err := s.Create(ctx, draft("t", "c"))
	p.is(err, nil, "create")
	other := connections.Draft{Tenant: "t", ID: "c", Kind: "other", Name: "other"}
	_, err = s.Create(ctx, other)
	p.is(err, connections.ErrExists, "create it again")
	got, err := s.Get(ctx, "t", "c")
	p.is(err, nil, "get")
	first.Secret = draft("t", "c").Secret
	p.same("after it was created again", got, first)
	_, err = s.Revoke(ctx, "t", "c")
	p.is(err, nil, "revoke")
	_, err = s.Create(ctx, other)
	p.is(err, connections.ErrExists, "create it again after it was revoked")
	p.holds(ctx, s, "t")
	other.ID = "C"
	_, err = s.Create(ctx, other)
	p.is(err, nil, "create one whose id differs by case")
	return p.err()
}

func oneCreates(ctx context.Context, s connections.Store) error {
	var p problems
	var wait sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wait.Go(func() { _, errs[i] = s.Create(ctx, draft("t", "c")) })
	}
	wait.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		} else {
			p.is(err, connections.ErrExists, "create beside others")
		}
	}
	if made != 1 {
		p.add("%d created it", made)
	}
	return p.err()
}

func updateChanges(ctx context.Context, s connections.Store) error {
	var p problems
	want, err := s.Create(ctx, draft("t", "c"))
	p.is(err, nil, "create")
	want.Secret = draft("t", "c").Secret
	if err := create(ctx, s, draft("t", "other"), draft("u", "c")); err != nil {
		return err
	}
	name, secret, none := "another name", connections.NewSecret([]byte("another")), connections.Secret{}
	for _, step := range []struct {
		what   string
		change connections.Change
		apply  func()
	}{
		{"the name", connections.Change{Name: &name}, func() { want.Name = name }},
		{"the settings", connections.Change{Settings: []byte(`{"a": 1}`)}, func() { want.Settings = []byte(`{"a": 1}`) }},
		{"the secret", connections.Change{Secret: &secret}, func() { want.Secret = secret }},
		{"no secret any more", connections.Change{Secret: &none}, func() { want.Secret = none }},
		{"all", connections.Change{Name: &want.ID, Settings: []byte(`{}`), Secret: &secret}, func() { want.Name, want.Settings, want.Secret = want.ID, []byte(`{}`), secret }},
	} {
		before := want.Updated
		updated, err := s.Update(ctx, "t", "c", step.change)
		p.is(err, nil, "update %s", step.what)
		step.apply()
		want.Updated = updated.Updated
		if want.Updated.Before(before) {
			p.add("%s: updated %s, and before that %s", step.what, want.Updated, before)
		}
		got, err := s.Get(ctx, "t", "c")
		p.is(err, nil, "get after an update of %s", step.what)
		p.same("got after an update of "+step.what, got, want)
		shown := want
		shown.Secret = none
		p.same("the answer to an update of "+step.what, updated, shown)
	}
	for tenant, id := range map[string]string{"t": "other", "u": "c"} {
		got, err := s.Get(ctx, tenant, id)
		p.is(err, nil, "get another")
		if d := draft(tenant, id); got.Name != d.Name || !got.Secret.Equal(d.Secret) || !got.Updated.Equal(got.Created) {
			p.add("connection %q of tenant %q was changed too", id, tenant)
		}
	}
	_, err = s.Update(ctx, "t", "unknown", connections.Change{Name: &name})
	p.is(err, connections.ErrNotFound, "update an unknown one")
	return p.err()
}

// Nobody changes what is kept by writing to what he gave or was given.
func keptIsCopy(ctx context.Context, s connections.Store) error {
	var p problems
	made := map[string]connections.Connection{}
	var all [][]byte
	change := connections.Change{Settings: []byte(`{"a":"x"}`)}
	for _, id := range []string{"created", "updated"} {
		d := draft("t", id)
		d.Settings = []byte(`{"a":"x"}`)
		c, err := s.Create(ctx, d)
		p.is(err, nil, "create")
		all = append(all, d.Settings, c.Settings)
		made[id] = c
	}
	updated, err := s.Update(ctx, "t", "updated", change)
	p.is(err, nil, "update")
	all = append(all, change.Settings, updated.Settings)
	for id := range made {
		got, err := s.Get(ctx, "t", id)
		p.is(err, nil, "get")
		all = append(all, got.Settings, got.Secret.Reveal())
	}
	listed, err := s.List(ctx, "t", connections.Page{})
	p.is(err, nil, "list")
	for _, c := range listed.Connections {
		all = append(all, c.Settings)
	}
	for _, b := range all {
		copy(b, "overwritten")
	}
	for id, want := range made {
		got, err := s.Get(ctx, "t", id)
		p.is(err, nil, "get again")
		want.Settings, want.Secret = []byte(`{"a":"x"}`), draft("t", id).Secret
		if id == "updated" {
			want.Updated = updated.Updated
		}
		p.same(id+", after all was overwritten", got, want)
	}
	return p.err()
}

func endedContext(ctx context.Context, s connections.Store) error {
	var p problems
	if err := create(ctx, s, draft("t", "c")); err != nil {
		return err
	}
	ended, end := context.WithCancel(ctx)
	end()
	name := "another"
	_, err := s.Create(ended, draft("t", "d"))
	p.is(err, context.Canceled, "create")
	_, err = s.Update(ended, "t", "c", connections.Change{Name: &name})
	p.is(err, context.Canceled, "update")
	_, err = s.Revoke(ended, "t", "c")
	p.is(err, context.Canceled, "revoke")
	_, err = s.Purge(ended, "t")
	p.is(err, context.Canceled, "purge")
	_, err = s.Get(ended, "t", "c")
	p.is(err, context.Canceled, "get")
	_, err = s.List(ended, "t", connections.Page{})
	p.is(err, context.Canceled, "list")
	p.holds(ctx, s, "t", "c")
	if got, err := s.Get(ctx, "t", "c"); err == nil && got.Name == name {
		p.add("it was updated")
	}
	return p.err()
}
