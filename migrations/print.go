package migrations

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Direction is the way of a migration.
type Direction string

// The two ways.
const (
	DirectionUp   Direction = "up"
	DirectionDown Direction = "down"
)

// SQL returns the text of a component's migrations in one direction, for those who
// run it by hand: all versions up, or all of them down, newest first (Migrator.Down
// takes one). It keeps the ledger too, so that Status knows afterwards. schema is
// DefaultSchema when empty. It needs no database.
//
// It is for a schema without the component, or for the versions that are missing
// in it: it lacks what Up does about builds that did not end. A version is
// recorded only when its indexes are valid.
func SQL(component, schema string, d Direction) (string, error) {
	c, err := find(component)
	if err != nil {
		return "", err
	}
	schema = cmp.Or(schema, DefaultSchema(component))
	if err := checkSchema(schema); err != nil {
		return "", err
	}
	if d != DirectionUp && d != DirectionDown {
		return "", fmt.Errorf("unknown direction %q; write %s or %s", d, DirectionUp, DirectionDown)
	}

	l := ledger{component: c, schema: schema}
	var b strings.Builder
	fmt.Fprintf(&b, "-- component %s in schema %s, %s\n", c.name, pgx.Identifier{schema}.Sanitize(), d)
	versions := slices.Clone(c.versions)
	if d == DirectionDown {
		slices.Reverse(versions)
	}
	for _, v := range versions {
		up, down, inTransaction, err := c.sections(v, schema)
		if err != nil {
			return "", err
		}
		body, keep := up, l.recordText(v)
		if v.number == 1 {
			keep = l.createText() + ";\n" + keep
		}
		if d == DirectionDown {
			body, keep = down, l.forgetText(v)
		}
		if inTransaction {
			fmt.Fprintf(&b, "\n-- version %d %s\nBEGIN;\n%s\n%s\nCOMMIT;\n", v.number, v.name, body, keep)
		} else {
			fmt.Fprintf(&b, "\n-- version %d %s, each statement by itself and not in a transaction\n%s\n%s\n", v.number, v.name, body, keep)
		}
	}
	return b.String(), nil
}

// sections are the two halves of a version's file, without the library's marks.
func (c *component) sections(v version, schema string) (up, down string, inTransaction bool, err error) {
	text, err := c.render(v, schema)
	if err != nil {
		return "", "", false, err
	}
	halves := map[string]*strings.Builder{"-- +goose Up": {}, "-- +goose Down": {}}
	var half *strings.Builder
	inTransaction = true
	for line := range strings.Lines(string(text)) {
		mark := strings.TrimSpace(line)
		switch {
		case halves[mark] != nil:
			half = halves[mark]
		case mark == "-- +goose NO TRANSACTION":
			inTransaction = false
		case strings.HasPrefix(mark, "-- +goose"):
		case half != nil:
			half.WriteString(line)
		}
	}
	return strings.TrimSpace(halves["-- +goose Up"].String()), strings.TrimSpace(halves["-- +goose Down"].String()), inTransaction, nil
}

func (l ledger) recordText(v version) string {
	text := fmt.Sprintf("INSERT INTO %s (version, name)\nSELECT %d, %s", l.qualified(), v.number, literal(v.name))
	for i, x := range v.indexes {
		word := "WHERE"
		if i > 0 {
			word = "  AND"
		}
		text += fmt.Sprintf("\n %s EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indisvalid AND i.indexrelid = pg_catalog.to_regclass(%s))",
			word, literal(pgx.Identifier{l.schema, x.Name}.Sanitize()))
	}
	return text + ";"
}

func (l ledger) forgetText(v version) string {
	return fmt.Sprintf("DELETE FROM %s WHERE version = %d;", l.qualified(), v.number)
}
