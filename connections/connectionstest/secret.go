package connectionstest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/prunectl/prunectl/connections"
)

var secretChecks = []Check{
	{"no error has a secret in it", noErrorShows},
	{"what is returned shows no secret", nothingReturnedShows},
}

// Shows reports whether a text has these bytes in it, as they are or in one of the forms in which programs print bytes.
func Shows(text string, secret []byte) bool {
	quoted, _ := json.Marshal(string(secret)) // a text is always encoded
	for _, form := range []string{
		string(secret), strings.Trim(string(quoted), `"`), hex.EncodeToString(secret), base64.StdEncoding.EncodeToString(secret),
		strings.Trim(fmt.Sprint(secret), "[]"), strings.Trim(fmt.Sprintf("%#v", secret), "[]byte{}"),
	} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(form)) {
			return true
		}
	}
	return false
}

// Printed is a value in every form in which programs print one.
func Printed(v any) string {
	var b bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "% x"} {
		fmt.Fprintf(&b, verb+"\n", v)
	}
	j, _ := json.Marshal(v) // what can not be encoded shows nothing
	b.Write(j)
	for _, h := range []slog.Handler{slog.NewTextHandler(&b, nil), slog.NewJSONHandler(&b, nil)} {
		slog.New(h).Error("it failed", "v", v)
	}
	return b.String()
}

func noErrorShows(ctx context.Context, s connections.Store) error {
	var p problems
	bytes := []byte("sk_live_4eC39HqLyjWDarjt")
	secret := connections.NewSecret(bytes)
	with := func(change func(*connections.Draft)) connections.Draft {
		d := connections.Draft{Tenant: "t", ID: "c", Kind: "k", Name: "n", Secret: secret}
		change(&d)
		return d
	}
	if err := create(ctx, s, with(func(*connections.Draft) {})); err != nil {
		return err
	}
	ended, end := context.WithCancel(ctx)
	end()
	var errs []error
	fails := func(_ any, err error) {
		if err == nil {
			p.add("call %d did not fail", len(errs))
		}
		errs = append(errs, err)
	}
	name := "n"
	fails(s.Create(ctx, with(func(*connections.Draft) {})))
	fails(s.Create(ctx, with(func(d *connections.Draft) { d.Tenant = "" })))
	fails(s.Create(ctx, with(func(d *connections.Draft) { d.ID = " " })))
	fails(s.Create(ctx, with(func(d *connections.Draft) { d.Settings = []byte(`{"token": "` + string(bytes) + `"`) })))
	fails(s.Create(ctx, with(func(d *connections.Draft) {
		d.Secret = connections.NewSecret([]byte(strings.Repeat(string(bytes), 3000)))
	})))
	fails(s.Create(ended, with(func(d *connections.Draft) { d.ID = "d" })))
	fails(s.Update(ctx, "t", "unknown", connections.Change{Secret: &secret}))
	fails(s.Update(ctx, "t", "c", connections.Change{Settings: bytes, Secret: &secret}))
	fails(s.Update(ended, "t", "c", connections.Change{Name: &name, Secret: &secret}))
	fails(s.Get(ended, "t", "c"))
	if _, err := s.Revoke(ctx, "t", "c"); err != nil {
		return err
	}
	fails(s.Get(ctx, "t", "c"))
	fails(s.Create(ctx, with(func(*connections.Draft) {})))
	fails(s.Update(ctx, "t", "c", connections.Change{Secret: &secret}))
	for i, err := range errs {
		if Shows(Printed(err), bytes) {
			p.add("the error of call %d has the secret in it", i)
		}
	}
	return p.err()
}

func nothingReturnedShows(ctx context.Context, s connections.Store) error {
	var p problems
	bytes := []byte("sk_live_4eC39HqLyjWDarjt")
	d := draft("t", "c")
	d.Secret = connections.NewSecret(bytes)
	made, err := s.Create(ctx, d)
	p.is(err, nil, "create")
	name := "another"
	updated, err := s.Update(ctx, "t", "c", connections.Change{Name: &name})
	p.is(err, nil, "update")
	got, err := s.Get(ctx, "t", "c")
	p.is(err, nil, "get")
	listed, err := s.List(ctx, "t", connections.Page{})
	p.is(err, nil, "list")
	for what, v := range map[string]any{"the store": s, "a creation": made, "an update": updated, "a connection": got, "a list": listed} {
		if Shows(Printed(v), bytes) {
			p.add("%s shows the secret", what)
		}
	}
	for _, c := range append(listed.Connections, made, updated) {
		if !c.Secret.IsZero() {
			p.add("there is a secret where only Get is to return one")
		}
	}
	if !got.Secret.Equal(d.Secret) {
		p.add("what is got has another secret")
	}
	return p.err()
}
