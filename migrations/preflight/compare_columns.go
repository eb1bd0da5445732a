package preflight

import (
	"slices"
	"strings"
)

func (c *comparison) columns(w, h table) {
	alter := "ALTER TABLE " + c.in(w.Name) + " "
	var expected, found []string // the order of those that are in both
	for _, x := range w.Columns {
		name := w.Name + "." + x.Name
		i := slices.IndexFunc(h.Columns, func(y column) bool { return y.Name == x.Name })
		if i < 0 {
			c.refuse("column", name, "", x.words(), missing, "where it was renamed, rename it back; where it was dropped, %sADD COLUMN %s %s, and restore what was in it", alter, quote(x.Name), x.words())
			continue
		}
		expected = append(expected, x.Name)
		c.column(name, alter+"ALTER COLUMN "+quote(x.Name)+" ", x, h.Columns[i])
	}
	for _, y := range h.Columns {
		if slices.ContainsFunc(w.Columns, func(x column) bool { return x.Name == y.Name }) {
			found = append(found, y.Name)
			continue
		}
		v := Refused
		if y.idle() {
			v = Warning
		}
		c.add(v, "column", w.Name+"."+y.Name, "", nothing, y.words(), "a later version may want the name; where nobody needs it, %sDROP COLUMN %s", alter, quote(y.Name))
	}
	if !slices.Equal(expected, found) {
		c.add(Warning, "table", w.Name, "order of columns", strings.Join(expected, ", "), strings.Join(found, ", "),
			"statements that name their columns are not concerned; COPY and INSERT without names are")
	}
}

func (c *comparison) column(name, alter string, x, y column) {
	collate := ""
	if x.Collation != "" {
		collate = " COLLATE " + x.Collation
	}
	c.differs("column", name, "type", x.Type, y.Type, "%sTYPE %s%s; what is in it is converted, so look at it first", alter, x.Type, collate)
	if x.Type == y.Type {
		c.differs("column", name, "collation", or(x.Collation, "the type's own"), or(y.Collation, "the type's own"), "%sTYPE %s%s; indexes on it are built anew", alter, x.Type, or(collate, ` COLLATE "default"`))
	}
	do := "DROP NOT NULL"
	if x.Nullability == "not null" {
		do = "SET NOT NULL, when no row has a null in it"
	}
	if y.Nullability == "not null, not validated" {
		do = "SET NOT NULL validates it, when no row has a null in it"
	}
	c.differs("column", name, "nullability", x.Nullability, y.Nullability, "%s%s", alter, do)
	do = "SET DEFAULT " + x.Default
	if x.Default == "" {
		do = "DROP DEFAULT"
	}
	c.differs("column", name, "default", x.Default, y.Default, "%s%s", alter, do)
	c.differs("column", name, "identity", x.Identity, y.Identity, "make it again as expected, with ALTER COLUMN ... ADD GENERATED, SET GENERATED, SET or DROP IDENTITY")
	c.differs("column", name, "generated", x.Generated, y.Generated, "an expression can not be changed everywhere: drop the column and add it as %s", x.words())
}

// idle reports whether statements that do not know the column go on as before: it
// can stay null, and does.
func (x column) idle() bool {
	return x.Nullability == "nullable" && x.Default == "" && x.Identity == "" && x.Generated == "" && !x.Domain
}

// words is the column in SQL, but for what an identity's sequence is.
func (x column) words() string {
	s := x.Type
	if x.Collation != "" {
		s += " COLLATE " + x.Collation
	}
	if x.Nullability != "nullable" {
		s += " NOT NULL"
	}
	if x.Default != "" {
		s += " DEFAULT " + x.Default
	}
	if how, _, _ := strings.Cut(x.Identity, ","); how != "" {
		s += " GENERATED " + strings.ToUpper(how) + " AS IDENTITY"
	}
	if how, expression, ok := strings.Cut(x.Generated, " "); ok {
		s += " GENERATED ALWAYS AS (" + expression + ") " + strings.ToUpper(how)
	}
	return s
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
