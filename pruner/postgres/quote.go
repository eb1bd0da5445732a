package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/policy"
)

// ident quotes a name, part by part.
func ident(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

// tableName quotes schema.table.
func tableName(n policy.Name) string { return ident(n.Schema, n.Table) }

// literal is a string literal that means the same under every setting of standard_conforming_strings.
func literal(s string) string {
	s = strings.ReplaceAll(s, "\x00", "")
	quoted := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.Contains(s, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// typed is a literal of a column's own type: a state as text would not compare with an enum, and a parameter could not
// prove the predicate of a partial index.
func typed(v policy.Value, c column) string {
	if v.IsNull() {
		return "NULL::" + c.typ
	}
	return literal(v.String()) + "::" + c.typ
}
