package connectionstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prunectl/prunectl/connections"
)

var defects = []defect{
	{"what is created is got", "it cuts secrets off at a zero byte", got(func(c *connections.Connection) {
		text, _, _ := strings.Cut(string(c.Secret.Reveal()), "\x00")
		c.Secret = connections.NewSecret([]byte(text))
	})},
	{"what is created is got", "it trims names", got(func(c *connections.Connection) { c.Name = strings.TrimSpace(c.Name) })},
	{"what is created is got", "large numbers lose their end", got(func(c *connections.Connection) {
		c.Settings = []byte(strings.ReplaceAll(string(c.Settings), "9007199254740993", "9007199254740992"))
	})},
	{"what is created is got", "times are local", got(func(c *connections.Connection) { c.Created = c.Created.In(time.FixedZone("", 3600)) })},
	{"what is created is got", "an unknown one is empty", func(b *broken) {
		get := b.get
		b.get = func(ctx context.Context, t, id string) (connections.Connection, error) {
			c, err := get(ctx, t, id)
			if errors.Is(err, connections.ErrNotFound) {
				err = nil
			}
			return c, err
		}
	}},
	{"an id is made where none is given", "it makes the same one", func(b *broken) {
		create := b.create
		b.create = func(ctx context.Context, d connections.Draft) (connections.Connection, error) {
			if d.ID == "" {
				d.ID = "new"
			}
			return create(ctx, d)
		}
	}},
	{"an id is given once", "the second one takes its place", func(b *broken) {
		create, update := b.create, b.update
		b.create = func(ctx context.Context, d connections.Draft) (connections.Connection, error) {
			c, err := create(ctx, d)
			if errors.Is(err, connections.ErrExists) {
				_, _ = update(ctx, d.Tenant, d.ID, connections.Change{Name: &d.Name}) // a revoked one is not there
			}
			return c, err
		}
	}},
	{"an id is given once", "that of a revoked one is free", func(b *broken) {
		g := graves{}
		g.keep(b)
		create := b.create
		b.create = func(ctx context.Context, d connections.Draft) (connections.Connection, error) {
			if _, ok := g[[2]string{d.Tenant, d.ID}]; ok {
				return connections.Connection{}, nil
			}
			return create(ctx, d)
		}
	}},
	{"of many who create one connection one does", "each is told that he did", func(b *broken) {
		create := b.create
		b.create = func(ctx context.Context, d connections.Draft) (connections.Connection, error) {
			c, err := create(ctx, d)
			if errors.Is(err, connections.ErrExists) {
				err = nil
			}
			return c, err
		}
	}},
	{"an update changes what is given", "it empties what is not", func(b *broken) {
		update := b.update
		b.update = func(ctx context.Context, t, id string, c connections.Change) (connections.Connection, error) {
			if c.Secret == nil {
				c.Secret = new(connections.Secret)
			}
			return update(ctx, t, id, c)
		}
	}},
	{"an update changes what is given", "it leaves settings as they are", func(b *broken) {
		update := b.update
		b.update = func(ctx context.Context, t, id string, c connections.Change) (connections.Connection, error) {
			if c.Settings != nil && c.Name != nil {
				c.Settings = nil
			}
			return update(ctx, t, id, c)
		}
	}},
	{"an update changes what is given", "it keeps a secret that is removed", func(b *broken) {
		update := b.update
		b.update = func(ctx context.Context, t, id string, c connections.Change) (connections.Connection, error) {
			name := "another name"
			if c.Secret != nil && c.Secret.IsZero() {
				c = connections.Change{Name: &name}
			}
			return update(ctx, t, id, c)
		}
	}},
	{"an update changes what is given", "it makes what is not there", func(b *broken) {
		update, create := b.update, b.create
		b.update = func(ctx context.Context, t, id string, c connections.Change) (connections.Connection, error) {
			if done, err := update(ctx, t, id, c); err == nil {
				return done, nil
			}
			return create(ctx, draft(t, id))
		}
	}},
	{"what is kept is a copy", "settings are shared", func(b *broken) {
		given := map[string][]byte{}
		create := b.create
		b.create = func(ctx context.Context, d connections.Draft) (connections.Connection, error) {
			given[d.ID] = d.Settings
			return create(ctx, d)
		}
		got(func(c *connections.Connection) { c.Settings = given[c.ID] })(b)
	}},
	{"a call whose context has ended does nothing", "it creates all the same", func(b *broken) {
		create := b.create
		b.create = func(ctx context.Context, d connections.Draft) (connections.Connection, error) {
			c, err := create(context.WithoutCancel(ctx), d)
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return c, err
		}
	}},
	{"what can not be used is refused", "a blank tenant is one", func(b *broken) {
		purge := b.purge
		b.purge = func(ctx context.Context, t string) (int, error) {
			if t == "" {
				return 0, nil
			}
			return purge(ctx, t)
		}
	}},
	{"what can not be used is refused", "a long name is cut", func(b *broken) {
		create := b.create
		b.create = func(ctx context.Context, d connections.Draft) (connections.Connection, error) {
			d.Name = d.Name[:min(len(d.Name), connections.MaxText)]
			return create(ctx, d)
		}
	}},
	{"what can not be used is refused", "a zero character is left out of settings", func(b *broken) {
		update := b.update
		b.update = func(ctx context.Context, t, id string, c connections.Change) (connections.Connection, error) {
			if c.Settings != nil {
				c.Settings = []byte(strings.ReplaceAll(string(c.Settings), `\u0000`, ""))
			}
			return update(ctx, t, id, c)
		}
	}},
	{"a tenant has its own connections alone", "names are without case", folded(strings.ToLower)},
	{"a tenant has its own connections alone", "names are without space behind", folded(func(t string) string {
		if s := strings.TrimRight(t, " "); s != "" {
			return s
		}
		return t
	})},
	{"a tenant has its own connections alone", "a percent sign is any text", func(b *broken) {
		get := b.get
		b.get = func(ctx context.Context, t, id string) (connections.Connection, error) {
			if prefix, ok := strings.CutSuffix(t, "%"); ok && prefix != "" {
				t = prefix
			}
			return get(ctx, t, id)
		}
	}},
	{"a tenant has its own connections alone", "a list is of all", func(b *broken) {
		list := b.list
		b.list = func(ctx context.Context, t string, p connections.Page) (connections.List, error) {
			l, err := list(ctx, t, p)
			if t == "acme" {
				more, _ := list(ctx, "Acme", p)
				l.Connections = append(l.Connections, more.Connections...)
			}
			return l, err
		}
	}},
	{"a tenant has its own connections alone", "a revocation is of the id alone", func(b *broken) {
		revoke := b.revoke
		b.revoke = func(ctx context.Context, t, id string) (time.Time, error) {
			for _, o := range tenants {
				if o != t {
					_, _ = revoke(ctx, o, id) // where it is there
				}
			}
			return revoke(ctx, t, id)
		}
	}},
	{"what is another's is not there", "it is said that it is another's", func(b *broken) {
		get := b.get
		b.get = func(ctx context.Context, t, id string) (connections.Connection, error) {
			c, err := get(ctx, t, id)
			if _, other := get(ctx, "another", id); err != nil && other == nil {
				err = fmt.Errorf("it is another tenant's: %w", err)
			}
			return c, err
		}
	}},
	{"what is another's is not there", "it is another error", func(b *broken) {
		update, get := b.update, b.get
		b.update = func(ctx context.Context, t, id string, c connections.Change) (connections.Connection, error) {
			done, err := update(ctx, t, id, c)
			if _, other := get(ctx, "another", id); err != nil && other == nil {
				err = connections.ErrExists
			}
			return done, err
		}
	}},
	{"a revoked connection is found by nobody", "get finds it", func(b *broken) {
		g := graves{}
		g.keep(b)
		get := b.get
		b.get = func(ctx context.Context, t, id string) (connections.Connection, error) {
			if c, ok := g[[2]string{t, id}]; ok {
				return c, nil
			}
			return get(ctx, t, id)
		}
	}},
	{"a revoked connection is found by nobody", "a list has it", func(b *broken) {
		g := graves{}
		g.keep(b)
		list := b.list
		b.list = func(ctx context.Context, t string, p connections.Page) (connections.List, error) {
			l, err := list(ctx, t, p)
			for key, c := range g {
				if key[0] == t {
					l.Connections = append(l.Connections, c)
				}
			}
			return l, err
		}
	}},
	{"a revoked connection is found by nobody", "an update finds it", func(b *broken) {
		g := graves{}
		g.keep(b)
		update := b.update
		b.update = func(ctx context.Context, t, id string, ch connections.Change) (connections.Connection, error) {
			if c, ok := g[[2]string{t, id}]; ok {
				return c, nil
			}
			return update(ctx, t, id, ch)
		}
	}},
	{"a revoked connection is found by nobody", "an unknown one is revoked", func(b *broken) {
		revoke := b.revoke
		b.revoke = func(ctx context.Context, t, id string) (time.Time, error) {
			at, err := revoke(ctx, t, id)
			if errors.Is(err, connections.ErrNotFound) {
				err = nil
			}
			return at, err
		}
	}},
	{"the first revocation stays", "the last one does", func(b *broken) {
		revoke := b.revoke
		n := 0
		b.revoke = func(ctx context.Context, t, id string) (time.Time, error) {
			at, err := revoke(ctx, t, id)
			n++
			return at.Add(time.Duration(n) * time.Second), err
		}
	}},
	{"the first revocation stays", "the second one is refused", func(b *broken) {
		revoke := b.revoke
		done := map[string]bool{}
		b.revoke = func(ctx context.Context, t, id string) (time.Time, error) {
			if done[t+"/"+id] {
				return time.Time{}, connections.ErrNotFound
			}
			done[t+"/"+id] = true
			return revoke(ctx, t, id)
		}
	}},
	{"of many who revoke all are told the same", "each is told his own time", func(b *broken) {
		revoke := b.revoke
		b.revoke = func(ctx context.Context, t, id string) (time.Time, error) {
			_, err := revoke(ctx, t, id)
			return time.Now(), err
		}
	}},
	{"a list is read page by page", "the next page begins with the last of this one", func(b *broken) {
		list := b.list
		b.list = func(ctx context.Context, t string, p connections.Page) (connections.List, error) {
			l, err := list(ctx, t, p)
			if len(l.Connections) > 1 && l.Next != "" {
				l.Next = connections.CursorAfter(l.Connections[len(l.Connections)-2])
			}
			return l, err
		}
	}},
	{"a list is read page by page", "the newest is first", listed(asIs, func(l *connections.List) { slices.Reverse(l.Connections) })},
	{"a list is read page by page", "a full page is the end", func(b *broken) {
		list := b.list
		b.list = func(ctx context.Context, t string, p connections.Page) (connections.List, error) {
			l, err := list(ctx, t, p)
			if len(l.Connections) == 7 {
				l.Next = ""
			}
			return l, err
		}
	}},
	{"a list is read page by page", "there is always more", listed(asIs, func(l *connections.List) {
		if n := len(l.Connections); n > 0 {
			l.Next = connections.CursorAfter(l.Connections[n-1])
		}
	})},
	{"a page that can not be is refused", "zero is all", listed(func(p *connections.Page) {
		if p.Limit == 0 {
			p.Limit = connections.MaxLimit
		}
	}, func(*connections.List) {})},
	{"a page that can not be is refused", "what is no cursor is the beginning", listed(func(p *connections.Page) {
		if _, _, err := p.After.Position(); err != nil {
			p.After = ""
		}
	}, func(*connections.List) {})},
	{"a page that can not be is refused", "a limit is cut", listed(func(p *connections.Page) { p.Limit = min(p.Limit, connections.MaxLimit) }, func(*connections.List) {})},
	{"a purge removes all of a tenant", "revoked ones stay", func(b *broken) {
		g := graves{}
		g.keep(b)
		create, revoke, purge := b.create, b.revoke, b.purge
		b.purge = func(ctx context.Context, t string) (int, error) {
			n, err := purge(ctx, t)
			for key := range g {
				if key[0] == t {
					n--
					_, _ = create(ctx, draft(t, key[1])) // it was there
					_, _ = revoke(ctx, t, key[1])
				}
			}
			return n, err
		}
	}},
	{"a purge removes all of a tenant", "it counts those that were not revoked", func(b *broken) {
		list, purge := b.list, b.purge
		b.purge = func(ctx context.Context, t string) (int, error) {
			l, _ := list(ctx, t, connections.Page{Limit: connections.MaxLimit})
			_, err := purge(ctx, t)
			return len(l.Connections), err
		}
	}},
	{"a purge removes nothing of another tenant", "names are without case", alsoPurges(strings.EqualFold)},
	{"a purge removes nothing of another tenant", "names are without space", alsoPurges(func(t, o string) bool { return strings.TrimSpace(t) == strings.TrimSpace(o) })},
	{"a purge removes nothing of another tenant", "a percent sign is all", alsoPurges(func(t, _ string) bool { return t == "%" })},
	{"a purge removes nothing of another tenant", "a name is SQL", alsoPurges(func(t, _ string) bool { return strings.Contains(t, "OR '1'='1") })},
	{"a purge removes nothing of another tenant", "composed and decomposed are one", alsoPurges(func(t, o string) bool { return t == "É" && o == "E\u0301" })},
	{"a purge of an unknown tenant removes nothing", "it is an error", func(b *broken) {
		purge := b.purge
		b.purge = func(ctx context.Context, t string) (int, error) {
			n, err := purge(ctx, t)
			if n == 0 && err == nil {
				err = connections.ErrNotFound
			}
			return n, err
		}
	}},
	{"a purge of an unknown tenant removes nothing", "it is taken for a pattern", alsoPurges(func(t, o string) bool { return t == "*" && o == "acme" })},
	{"no error has a secret in it", "it says what it was to create", func(b *broken) {
		create := b.create
		b.create = func(ctx context.Context, d connections.Draft) (connections.Connection, error) {
			c, err := create(ctx, d)
			if errors.Is(err, connections.ErrExists) {
				err = fmt.Errorf("failing row contains (%s, %x): %w", d.Tenant, d.Secret.Reveal(), err)
			}
			return c, err
		}
	}},
	{"no error has a secret in it", "it says the settings that are no JSON", func(b *broken) {
		update := b.update
		b.update = func(ctx context.Context, t, id string, ch connections.Change) (connections.Connection, error) {
			c, err := update(ctx, t, id, ch)
			if errors.Is(err, connections.ErrInput) {
				err = fmt.Errorf("settings %s: %w", ch.Settings, err)
			}
			return c, err
		}
	}},
	{"no error has a secret in it", "it is in a field of the error", func(b *broken) {
		update := b.update
		b.update = func(ctx context.Context, t, id string, ch connections.Change) (connections.Connection, error) {
			c, err := update(ctx, t, id, ch)
			if err != nil && ch.Secret != nil {
				err = &detailed{err, ch.Secret.Reveal()}
			}
			return c, err
		}
	}},
	{"what is returned shows no secret", "a list has secrets", func(b *broken) {
		list, get := b.list, b.get
		b.list = func(ctx context.Context, t string, p connections.Page) (connections.List, error) {
			l, err := list(ctx, t, p)
			for i := range l.Connections {
				l.Connections[i], _ = get(ctx, t, l.Connections[i].ID)
			}
			return l, err
		}
	}},
	{"what is returned shows no secret", "the settings have it", got(func(c *connections.Connection) {
		c.Settings = fmt.Appendf(nil, `{"token": %q}`, c.Secret.Reveal())
	})},
	{"what is returned shows no secret", "nobody gets it", got(func(c *connections.Connection) { c.Secret = connections.Secret{} })},
}
