package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/prunectl/prunectl/pruner/tenant"
)

func noTenant(format string, args ...any) *tenant.Error {
	return &tenant.Error{What: fmt.Sprintf(format, args...)}
}

// saysTenant refuses what names no tenant whatever the tables are.
func saysTenant(of string) error {
	switch {
	case of == "":
		return noTenant("no tenant is named; write whose rows are to go")
	case !utf8.ValidString(of):
		return noTenant("%q is no text: it is not valid UTF-8", of)
	case strings.ContainsRune(of, 0):
		return noTenant("%q is no tenant: it contains a NUL, which no column can have", of)
	case strings.TrimFunc(of, unicode.IsSpace) == "":
		return noTenant("%q is no tenant: there are only blanks in it", of)
	}
	return nil
}

// suspect reports whether a value looks like one that is meant for several tenants.
func suspect(of string) bool {
	return strings.ContainsAny(of, "%*") || slices.Contains([]string{"null", "all"}, strings.ToLower(of))
}

// columnType is the type of a column that says whose a row is, a domain's base type.
type columnType struct {
	typ       string // as it is written in a cast
	name      string // for messages
	kind      string // pg_type.typtype: b, e, ..
	base      uint32
	collation bool // it has one that is not deterministic
}

// whoseTypeSQL goes down to the base type over any number of domains.
const whoseTypeSQL = `
WITH RECURSIVE down (oid, n) AS (
  SELECT a.atttypid, 0 FROM pg_attribute a WHERE a.attrelid = $1::oid AND a.attnum = $2::int2
  UNION ALL
  SELECT t.typbasetype, d.n + 1 FROM down d JOIN pg_type t ON t.oid = d.oid WHERE t.typtype = 'd')
SELECT quote_ident(n.nspname) || '.' || quote_ident(t.typname), format_type(t.oid, NULL), t.typtype::text, t.oid,
       EXISTS (SELECT FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation WHERE a.attrelid = $1::oid AND a.attnum = $2::int2 AND NOT c.collisdeterministic)
  FROM down d JOIN pg_type t ON t.oid = d.oid JOIN pg_namespace n ON n.oid = t.typnamespace
 ORDER BY d.n DESC LIMIT 1`

// The oids of the types in which one text is one tenant.
const (
	textOID    = 25
	varcharOID = 1043
	uuidOID    = 2950
)

// checkTypes refuses columns in which two tenants could be one, and returns those that say whose a row is, each type once.
func (i *PurgeInspection) checkTypes(ctx context.Context, q query) (types []columnType, err error) {
	f := &i.findings
	for n, s := range i.steps {
		c, _ := s.top().column(s.whom.name)
		var t columnType
		if err := q.row(ctx, whoseTypeSQL, s.top().oid, c.num).Scan(&t.typ, &t.name, &t.kind, &t.base, &t.collation); err != nil {
			return nil, err
		}
		s.whom = c
		s.whom.typ, s.whom.base = t.typ, t.base
		if s.child() {
			continue
		}
		key := i.paths[n] + ".column"
		switch {
		case t.collation:
			f.refuse("column", key, "", "column %s of %s has a collation that is not deterministic: two tenants could be one", c.name, s.top().name)
		case t.kind == "e" || slices.Contains([]uint32{textOID, varcharOID, uuidOID, int2OID, int4OID, int8OID}, t.base):
			f.ok("column", key, "column %s says whose a row of %s is, as %s", c.name, s.top().name, t.name)
			if !slices.Contains(types, t) {
				types = append(types, t)
			}
		default:
			f.refuse("column", key, "", "column %s of %s is %s; whose a row is can be told from text, varchar, uuid, whole numbers and enums, and in others two tenants could be one", c.name, s.top().name, c.typname)
		}
	}
	return types, nil
}

// checkTenant holds the value against the types of the columns: it must come back as it was written, or two spellings would
// be two tenants in one table and one in another. What looks like a pattern must be somebody's name.
func (i *PurgeInspection) checkTenant(ctx context.Context, q query, types []columnType) error {
	given := i.Tenant
	for _, t := range types {
		back, err := asColumn(ctx, q, given, t.typ)
		if err != nil {
			return err
		}
		switch {
		case back == given:
		case t.base == uuidOID && strings.EqualFold(back, given):
			i.Tenant = back
		default:
			return noTenant("%q is read as %q by a column of type %s; write it so", given, back, t.name)
		}
	}
	if i.Tenant != given && len(types) > 1 {
		return noTenant("%q is %q in some tables and another tenant in others; write it so", given, i.Tenant)
	}
	if !suspect(i.Tenant) || i.findings.refused("") {
		return nil
	}
	if err := q.exec(ctx, lookSettingsSQL(&i.Purge)); err != nil {
		return err
	}
	for _, s := range i.steps {
		if s.child() {
			continue
		}
		r := &renderer{}
		r.line("SELECT EXISTS (SELECT FROM ONLY %s e WHERE e.%s = %s)", tableName(s.table().name), ident(s.whom.name), s.value(r))
		var is bool
		if err := q.row(ctx, r.b.String(), i.Tenant).Scan(&is); err != nil {
			return fmt.Errorf("look for rows of %s in %s: %w", i.Tenant, s.table().name, err)
		}
		if is {
			return nil
		}
	}
	kind := "a pattern"
	if !strings.ContainsAny(i.Tenant, "%*") {
		kind = "a word"
	}
	return noTenant("%q looks like %s; a tenant is one value, and no row has exactly this one", i.Tenant, kind)
}

// asColumn is the value as a column of the type has it. The server's own input function is asked, inside a savepoint, since
// it raises an error for what is no value.
func asColumn(ctx context.Context, q query, of, typ string) (back string, err error) {
	sp, err := q.tx.Begin(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = sp.Rollback(ctx) }()
	err = sp.QueryRow(ctx, "SELECT $1::text::"+typ+"::text", q.mode, of).Scan(&back)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && strings.HasPrefix(pg.Code, "22") {
		return "", noTenant("%q is no tenant of these tables: %s", of, pg.Message)
	}
	return back, err
}
