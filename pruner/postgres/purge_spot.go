package postgres

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/prunectl/prunectl/pruner"
)

// maxPages bounds how many pages of a table a batch reads, where no index finds the tenant's rows.
const maxPages = 1024

// spot is what a cursor of a purge stands for.
type spot struct {
	Begun  bool     `json:"begun"`            // it is not the beginning
	Key    []string `json:"key,omitempty"`    // by key: the last one so far
	At     string   `json:"at,omitempty"`     // by pages: the last address so far
	Edge   []string `json:"edge,omitempty"`   // by key: the last one when the pass began
	Pages  int64    `json:"pages,omitempty"`  // by pages: how many the table had when the pass began
	Most   int64    `json:"most,omitempty"`   // by index, and in the row that is emptied: how many rows may still be examined
	Passed string   `json:"passed,omitempty"` // tid[]: rows that stay, where no index orders them
	One    []string `json:"one,omitempty"`    // the key, or the address, of the row that is emptied
	Last   []string `json:"last,omitempty"`   // the last key of its rows so far
}

func (p spot) cursor() pruner.Cursor {
	p.Begun = true
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return pruner.NewCursor(string(b))
}

// parseSpot reads a cursor back; the zero cursor is the zero spot.
func parseSpot(c pruner.Cursor) (p spot, err error) {
	if c.IsZero() {
		return p, nil
	}
	if err := json.Unmarshal([]byte(c.String()), &p); err != nil || !p.Begun || p.At != "" && pageOf(p.At) < 0 {
		return spot{}, fmt.Errorf("%q is no cursor of a purge", c.String())
	}
	return p, nil
}

// from is the address after which a batch by pages begins.
func (p spot) from() string {
	if p.At == "" {
		return pageStart(0)
	}
	return p.At
}

// until is the address before which it ends. A batch of few rows reads few pages: what runs into its timeout is halved. Pages
// that the table did not have when the pass began are not read.
func (p spot) until(limit int) string {
	page := pageOf(p.from()) + int64(min(maxPages, limit))
	if p.Pages > 0 {
		page = min(page, p.Pages)
	}
	return pageStart(page)
}

// pageStart is before the first row of a page: rows are numbered from 1.
func pageStart(page int64) string { return "(" + strconv.FormatInt(min(page, 1<<32-2), 10) + ",0)" }

// pageOf is the page of an address, -1 where it is none.
func pageOf(tid string) int64 {
	page, _, ok := strings.Cut(strings.TrimPrefix(tid, "("), ",")
	n, err := strconv.ParseInt(page, 10, 64)
	if !ok || err != nil {
		return -1
	}
	return n
}

// past is the place behind the row that is emptied.
func (p spot) past() spot {
	if p.Pages > 0 {
		p.At = p.One[0]
	} else {
		p.Key = p.One
	}
	p.One, p.Last, p.Passed, p.Most = nil, nil, "", 0
	return p
}

// texts reads a list of texts, as the server wrote it.
func texts(text string) (l []string) {
	_ = json.Unmarshal([]byte(text), &l)
	if l == nil {
		l = []string{}
	}
	return l
}

// leastRow is what a row takes of a page at least, in bytes: its header, as it is aligned, and the pointer to it. A table has
// room for so many rows; it has fewer, so that a pass which ends after as many is not cut short.
const leastRow = 24 + 4

// bound notes in the first batch of a pass where the pass ends, so that it does whoever goes on writing: what comes behind
// that is found by the look, and is for the pass after it.
func (s *removal) bound(next *spot, row purgeRow, examined int) {
	switch {
	case len(next.One) > 0 || s.walk == byIndex:
		if next.Most == 0 {
			next.Most = row.most / leastRow
		}
		next.Most -= int64(examined)
	case s.walk == byPages && next.Pages == 0:
		next.Pages = max(1, row.most)
	case row.edge != nil:
		next.Edge = texts(*row.edge)
	}
}

// goOn says where the next batch goes on.
func (s *removal) goOn(res *pruner.Result, row purgeRow, at spot, limit, look int) {
	next := at
	s.bound(&next, row, res.Examined)
	switch {
	case len(at.One) > 0:
		s.goOnInOne(res, row, &next, limit)
	case s.child():
		s.goOnByPage(res, row, &next, limit, look)
	case res.Examined < limit:
		res.End = s.rangeEnded(&next, limit)
	case s.walk == byIndex:
		next.Passed = join(at.Passed, row.passed)
		res.End = next.Most <= 0
	default:
		s.place(&next, row.last)
	}
	res.Next = next.cursor()
}

// place puts the cursor behind a row.
func (s *removal) place(next *spot, last *string) {
	switch {
	case last == nil:
	case s.walk == byKey:
		next.Key = texts(*last)
	default:
		next.At = *last
	}
}

// rangeEnded goes on behind what the batch has read, and reports whether that was the last of it.
func (s *removal) rangeEnded(next *spot, limit int) bool {
	if s.walk != byPages {
		return true
	}
	next.At = next.until(limit)
	return pageOf(next.At) >= next.Pages
}

// goOnByPage goes on behind the rows of the page whose own rows are done, or into the first one where they do not fit.
func (s *removal) goOnByPage(res *pruner.Result, row purgeRow, next *spot, limit, look int) {
	done := row.page - row.rest
	switch {
	case row.wide != nil:
		next.One = []string{*row.wide}
		if s.walk == byKey {
			next.One = texts(*row.wide)
		}
	case row.rest > 0 || row.page == look:
		s.place(next, row.last)
	default:
		res.End = s.rangeEnded(next, limit)
	}
	switch {
	case row.wide != nil:
	case row.rest > 0:
		s.look = done + done/4 + 1
	case res.Examined < limit/2 && row.page == look:
		s.look = 2 * look
	}
}

// goOnInOne goes on with the next rows of the row that is emptied, or behind it.
func (s *removal) goOnInOne(res *pruner.Result, row purgeRow, next *spot, limit int) {
	switch {
	case res.Examined < limit || next.Most <= 0:
		*next = next.past()
	case s.chunked():
		next.Last = texts(*row.last)
	default:
		next.Passed = join(next.Passed, row.passed)
	}
}

// looks is how many rows a batch of a child looks at, of the table that says whose they are.
func (s *removal) looks(limit int) int {
	if s.look == 0 {
		s.look = max(1, limit/firstLook)
	}
	s.look = min(s.look, pruner.MaxLimit)
	return min(s.look, limit)
}
