package connections

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The limits of a page of a list.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// Page is the part of a list that is asked for.
type Page struct {
	After Cursor // List.Next of the page before; "" for the first one
	Limit int    // connections at most, to MaxLimit; zero: DefaultLimit
}

// WithDefaults is the page with its limit.
func (p Page) WithDefaults() Page {
	if p.Limit == 0 {
		p.Limit = DefaultLimit
	}
	return p
}

// Check is an error where the page, with its default, can not be asked for: [ErrLimit] or [ErrCursor].
func (p Page) Check() error {
	if p.Limit < 1 || p.Limit > MaxLimit {
		return fmt.Errorf("%w: a page of %d connections; it is 1 to %d", ErrLimit, p.Limit, MaxLimit)
	}
	_, _, err := p.After.Position()
	return err
}

// List is a page of a tenant's connections, in the order of their creation and, of one instant, of the bytes of their ids.
// Their secrets are left out.
type List struct {
	Connections []Connection
	Next        Cursor // for the page behind; "" where there is none
}

// Cursor is a place in a list, as a text that can stand in a URL. It names no tenant, and gives nobody what he could not
// list without it.
type Cursor string

// CursorAfter is the place behind a connection.
func CursorAfter(c Connection) Cursor {
	return Cursor(base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", c.Created.UnixMicro(), c.ID)))
}

// Position is the creation and the id that the place is behind: the zero time and "" at the beginning. The error is
// [ErrCursor].
func (c Cursor) Position() (created time.Time, id string, err error) {
	if c == "" {
		return time.Time{}, "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(string(c))
	micros, id, _ := strings.Cut(string(text), " ")
	n, numErr := strconv.ParseInt(micros, 10, 64)
	if err != nil || numErr != nil || CheckID(id) != nil || time.UnixMicro(n).UTC().Year() < 1 || time.UnixMicro(n).UTC().Year() > 9999 {
		return time.Time{}, "", fmt.Errorf("%w: take it from the page before", ErrCursor)
	}
	return time.UnixMicro(n).UTC(), id, nil
}
