package connections_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prunectl/prunectl/connections"
)

func TestACursorIsAPlace(t *testing.T) {
	for _, c := range []connections.Connection{
		{ID: "c", Created: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)}, {ID: `a b "c" é`, Created: time.Unix(0, 0)}, {ID: " 1 2", Created: time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)},
		{ID: strings.Repeat("x", connections.MaxText), Created: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)},
	} {
		at, id, err := connections.CursorAfter(c).Position()
		if err != nil || !at.Equal(c.Created) || id != c.ID || strings.ContainsAny(string(connections.CursorAfter(c)), "+/=% ") {
			t.Errorf("%q at %s: %q at %s, %v", c.ID, c.Created, id, at, err)
		}
	}
	if at, id, err := connections.Cursor("").Position(); err != nil || !at.IsZero() || id != "" {
		t.Error("the beginning is", at, id, err)
	}
	for _, c := range []connections.Connection{
		{Created: time.Unix(0, 0)}, {ID: "c", Created: time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)}, {ID: "c", Created: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, {ID: "\x00"}, {ID: "\xff"},
	} {
		if _, _, err := connections.CursorAfter(c).Position(); !errors.Is(err, connections.ErrCursor) {
			t.Errorf("%q at %s: %v", c.ID, c.Created, err)
		}
	}
}

func TestWhatIsLeftIsSaid(t *testing.T) {
	for want, e := range map[string]connections.LeftError{"3 connections": {Rows: 3}, "at least 7 connections": {Rows: 7, More: true}} {
		if got := e.Error(); !strings.HasPrefix(got, want+" of the tenant are left") {
			t.Error(got)
		}
	}
}
