package postgres

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
)

// oddTexts are texts on which a quoting can fail.
var oddTexts = []string{
	"", "done", "It's", `a"b`, `\`, `\'`, `'\''`, `\\`, `x\`, "a\nb", "--", "/*", "*/", "$$", "$1", "$1::", "%s", "%!d(", ";", "E'", "U&'\\0041'", "\u2019", "ÿ", "\ufeff", "\r\n", " pad ",
	`'; SELECT nextval('canary.told'); --`, `"; SELECT nextval('canary.told'); --`, `\'; SELECT nextval('canary.told'); --`, "\n; SELECT nextval('canary.told'); --\n", "*/; SELECT nextval('canary.told'); /*",
	"done\x00", "\xff", "\xbf'", strings.Repeat("n", 64), strings.Repeat("ß", 32),
}

// one runs a text as a script and as a statement of its own, and wants one and the same row from both, and nothing else.
func one(t *testing.T, c *pgconn.PgConn, sql string) (name, value string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	script, err := c.Exec(ctx, sql).ReadAll()
	statement := c.ExecParams(ctx, sql, nil, nil, nil, nil).Read()
	if (err == nil) != (statement.Err == nil) {
		t.Fatalf("%s\nis answered with %v as a script, with %v as a statement", sql, err, statement.Err)
	}
	if err != nil {
		return "", "", err
	}
	for _, r := range append(script, statement) {
		if len(script) != 1 || len(r.Rows) != 1 || len(r.Rows[0]) != 1 || len(r.FieldDescriptions) != 1 {
			t.Fatalf("%s\nis answered with %d results, the last of %d rows", sql, len(script), len(r.Rows))
		}
		name, value = r.FieldDescriptions[0].Name, string(r.Rows[0][0])
	}
	return name, value, nil
}

// asStored is a name as the server keeps it: its first 63 bytes, of whole characters.
func asStored(name string) string {
	for len(name) > 63 {
		_, n := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-n]
	}
	return name
}

// FuzzQuotes: the server reads every literal of ours as the text that it stands for, whatever backslashes mean to it, and
// every identifier as its name, also where it wrote that name itself. A NUL, which it has no way to hold, is left out; what
// is not UTF-8 it refuses.
func FuzzQuotes(f *testing.F) {
	for _, s := range oddTexts {
		f.Add(s)
	}
	db := pgtest.New(f)
	c := db.Conn(f).PgConn()
	kind := column{typ: `pg_catalog."text"`}
	f.Fuzz(func(t *testing.T, text string) {
		plain := strings.ReplaceAll(text, "\x00", "")
		for _, conforming := range []string{"on", "off"} {
			if _, err := c.Exec(t.Context(), "SET standard_conforming_strings = "+conforming+"; SET backslash_quote = safe_encoding").ReadAll(); err != nil {
				t.Fatal(err)
			}
			for what, sql := range map[string]string{
				"literal":       "SELECT " + literal(text),
				"typed literal": "SELECT " + typed(policy.Text(text), kind),
				"comparison":    "SELECT x.v FROM (SELECT " + literal(text) + "::text AS v) x WHERE " + in("x.v", policy.Texts(text, "other"), kind),
			} {
				_, got, err := one(t, c, sql)
				if (err == nil) != utf8.ValidString(plain) || err == nil && got != plain {
					t.Errorf("%s under standard_conforming_strings = %s: %q comes back as %q, %v", what, conforming, text, got, err)
				}
			}
			if plain == "" {
				continue // no name
			}
			name, _, err := one(t, c, "SELECT 7 AS "+ident(text))
			if (err == nil) != utf8.ValidString(plain) || err == nil && name != asStored(plain) {
				t.Errorf("the name %q comes back as %q, %v", text, name, err)
			}
			if err != nil {
				continue
			}
			theirs := c.ExecParams(t.Context(), "SELECT format('%I', $1::text)", [][]byte{[]byte(plain)}, nil, nil, nil).Read()
			if theirs.Err != nil {
				t.Fatal(theirs.Err)
			}
			sql := "SELECT " + ident(plain, text) + " FROM (SELECT 7 AS " + string(theirs.Rows[0][0]) + ") " + string(theirs.Rows[0][0])
			if _, got, err := one(t, c, sql); err != nil || got != "7" {
				t.Errorf("the name %q as the server writes it is not found by ours: %q, %v\n%s", text, got, err, sql)
			}
		}
	})
}
