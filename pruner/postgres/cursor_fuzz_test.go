package postgres

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prunectl/prunectl/pruner"
)

// FuzzParsePlace: a text is a place that is written back as that very text, or it is refused. What another engine wrote, or
// another version of this one with more to say, is never taken for half of what it says; and no place lies before since,
// where rows are undated and kept.
func FuzzParsePlace(f *testing.F) {
	since := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, text := range []string{
		"", "631152000000000", "1700000000000000", "9223372036854775807", "1700000000 0 3", "2024-01-01 00:00:00+00",
		`{"age":1700000000000000,"group":true}`, `{"age":1700000000000000,"group":true,"key":["1","a\"b"]}`, `{"age":1700000000000000,"passed":"{\"(0,1)\"}"}`,
		`{"age":1700000000000000,"chunk":{"parent":"(0,1)","table":1,"key":["7"]}}`, `{"age":1700000000000000}`, `{}`, `[1700000000000000]`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePlace(pruner.NewCursor(text), since)
		if err != nil {
			if !reflect.DeepEqual(p, place{}) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q: %+v beside %q", text, p, err)
			}
			return
		}
		if written := p.cursor().String(); written != text && text != "" {
			t.Errorf("%q is read as %+v, which is written %q", text, p, written)
		}
		if again, err := parsePlace(p.cursor(), since); err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%q is read as %+v, and once more as %+v, %v", text, p, again, err)
		}
		if p.Age < since.UnixMicro() {
			t.Errorf("%q is a place at %s, before %s", text, timestamptz(p.Age), since)
		}
	})
}

// FuzzPlace: every place that the engine comes to is written so that it reads the same, whatever the keys of the rows are.
func FuzzPlace(f *testing.F) {
	f.Add(int64(0), false, "", "", "", "", 0)
	f.Add(int64(1), true, "a", "b\"\\\n\u2028<>&", "", "", 0)
	f.Add(int64(-1), false, "", "", `{"(0,1)","(4294967294,65535)"}`, "", 0)
	f.Add(int64(1<<50), false, "\x00", "'", "", "(0,1)", 3)
	since := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, after int64, group bool, k1, k2, passed, parent string, table int) {
		for _, s := range []string{k1, k2, passed, parent} {
			if !utf8.ValidString(s) {
				t.Skip("the server's answers are UTF-8")
			}
		}
		if after < 0 || after > 1<<60 {
			t.Skip("no age between since and a cutoff")
		}
		p := place{Age: since.UnixMicro() + after, Group: group, Passed: passed}
		if k1 != "" || k2 != "" {
			p.Key = []string{k1, k2}
		}
		if parent != "" {
			p.Chunk = &chunk{Parent: parent, Table: table, Key: p.Key}
		}
		got, err := parsePlace(p.cursor(), since)
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%+v is written %q, and read as %+v, %v", p, p.cursor(), got, err)
		}
	})
}
