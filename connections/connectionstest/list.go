package connectionstest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/prunectl/prunectl/connections"
)

var listChecks = []Check{
	{"a list is read page by page", pagesMakeTheList},
	{"a page that can not be is refused", pageIsRefused},
}

func pagesMakeTheList(ctx context.Context, s connections.Store) error {
	var p problems
	none, err := s.List(ctx, "t", connections.Page{})
	p.is(err, nil, "list a tenant that has none")
	if len(none.Connections) != 0 || none.Next != "" {
		p.add("a tenant that has none has %d, and there is more: %t", len(none.Connections), none.Next != "")
	}
	var want []connections.Connection
	ids := []string{"b", "a", "B", "á", "c ", "c", "10", "9"} // as they come, in the order of no locale
	for i := range connections.DefaultLimit + 1 - len(ids) {
		ids = append(ids, fmt.Sprintf("more %d", i))
	}
	for i, id := range ids {
		c, err := s.Create(ctx, draft("t", id))
		p.is(err, nil, "create")
		if err := create(ctx, s, draft("T", id)); err != nil {
			return err
		}
		if i%7 == 6 {
			_, err := s.Revoke(ctx, "t", id)
			p.is(err, nil, "revoke")
			continue
		}
		want = append(want, c)
	}
	extra, err := s.Create(ctx, draft("t", "extra"))
	p.is(err, nil, "create")
	want = append(want, extra)
	slices.SortFunc(want, func(a, b connections.Connection) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	for _, limit := range []int{1, 2, 7, len(want) - 1, len(want), len(want) + 1, connections.MaxLimit} {
		var got []connections.Connection
		page := connections.Page{Limit: limit}
		for n := 0; ; n++ {
			l, err := s.List(ctx, "t", page)
			if err != nil || n > len(want) {
				p.add("page %d of %d: %v", n, limit, err)
				break
			}
			if len(l.Connections) > limit || l.Next != "" && len(l.Connections) < limit {
				p.add("page %d of %d has %d, and there is more: %t", n, limit, len(l.Connections), l.Next != "")
			}
			got = append(got, l.Connections...)
			if page.After = l.Next; page.After == "" {
				break
			}
			if len(l.Connections) == 0 {
				p.add("page %d of %d is empty, and there is more", n, limit)
				break
			}
		}
		if len(got) != len(want) {
			p.add("in pages of %d there are %d, want %d", limit, len(got), len(want))
			continue
		}
		for i := range got {
			p.same(fmt.Sprintf("place %d in pages of %d", i, limit), got[i], want[i])
		}
	}
	// What is behind a place stays there when what it was taken from is gone.
	first, err := s.List(ctx, "t", connections.Page{Limit: 2})
	p.is(err, nil, "list")
	for _, c := range first.Connections {
		_, err := s.Revoke(ctx, "t", c.ID)
		p.is(err, nil, "revoke")
	}
	next, err := s.List(ctx, "t", connections.Page{Limit: 1, After: first.Next})
	p.is(err, nil, "list on")
	if len(next.Connections) != 1 || next.Connections[0].ID != want[2].ID {
		p.add("behind a place that is gone there are %d connections, want %q", len(next.Connections), want[2].ID)
	}
	// A cursor is of no tenant: with another's one lists one's own.
	own, err := s.List(ctx, "T", connections.Page{Limit: 1, After: first.Next})
	p.is(err, nil, "list with another's cursor")
	for _, c := range own.Connections {
		if c.Tenant != "T" {
			p.add("with another's cursor there is connection %q of tenant %q", c.ID, c.Tenant)
		}
	}
	return p.err()
}

func pageIsRefused(ctx context.Context, s connections.Store) error {
	var p problems
	ids := make([]connections.Draft, connections.DefaultLimit+1)
	for i := range ids {
		ids[i] = draft("t", fmt.Sprint(i))
	}
	if err := create(ctx, s, ids...); err != nil {
		return err
	}
	for _, limit := range []int{-1, connections.MaxLimit + 1} {
		_, err := s.List(ctx, "t", connections.Page{Limit: limit})
		p.is(err, connections.ErrLimit, "a limit of %d", limit)
	}
	l, err := s.List(ctx, "t", connections.Page{})
	p.is(err, nil, "no limit")
	if len(l.Connections) != connections.DefaultLimit || l.Next == "" {
		p.add("without a limit there are %d connections, and there is more: %t; want %d and more", len(l.Connections), l.Next != "", connections.DefaultLimit)
	}
	for _, cursor := range []connections.Cursor{"x", "!", "MSBh%", "YSBi", "MQ", l.Next + "!", "'; DROP TABLE connections; --"} {
		_, err := s.List(ctx, "t", connections.Page{After: cursor})
		p.is(err, connections.ErrCursor, "the cursor %q", cursor)
	}
	return p.err()
}
