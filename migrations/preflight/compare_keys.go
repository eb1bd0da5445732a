package preflight

import (
	"fmt"
	"slices"
	"strings"
)

func (c *comparison) constraints(w, h table) {
	alter := "ALTER TABLE " + c.in(w.Name) + " "
	left := slices.Clone(h.Constraints)
	take := func(fits func(constraint) bool) (constraint, bool) {
		i := slices.IndexFunc(left, fits)
		if i < 0 {
			return constraint{}, false
		}
		x := left[i]
		left = slices.Delete(left, i, i+1)
		return x, true
	}
	// First those that are what and where they should be, so that a second one of the
	// same definition is not taken for them.
	var rest []constraint
	for _, x := range w.Constraints {
		y, ok := take(func(y constraint) bool { return y.Name == x.Name && y.Definition == x.Definition && !y.Outside })
		if !ok {
			rest = append(rest, x)
			continue
		}
		c.constraintState(w, x, y)
	}
	for _, x := range rest {
		name := w.Name + "." + x.Name
		if y, ok := take(func(y constraint) bool { return y.Definition == x.Definition && !y.Outside }); ok {
			c.add(Warning, "constraint", name, "name", x.Name, y.Name, "errors of the server name it; %sRENAME CONSTRAINT %s TO %s", alter, quote(y.Name), quote(x.Name))
			c.constraintState(w, x, y)
			continue
		}
		if y, ok := take(func(y constraint) bool { return y.Name == x.Name && !y.Outside }); ok {
			c.refuse("constraint", name, "definition", x.Definition, y.Definition, "%sDROP CONSTRAINT %s, ADD CONSTRAINT %s %s", alter, quote(y.Name), quote(x.Name), x.Definition)
			continue
		}
		c.refuse("constraint", name, "", x.Definition, missing, "%sADD CONSTRAINT %s %s", alter, quote(x.Name), x.Definition)
	}
	for _, y := range left {
		do := alter + "DROP CONSTRAINT " + quote(y.Name)
		if y.Outside {
			do = "it refuses or widens what is removed here; drop it there"
		}
		c.refuse("constraint", w.Name+"."+y.Name, "", nothing, y.Definition, "%s", do)
	}
}

func (c *comparison) constraintState(w table, x, y constraint) {
	do := fmt.Sprintf("ALTER TABLE %s ENABLE TRIGGER ALL, as a superuser, when no row breaks it", c.in(w.Name))
	switch {
	case y.State == "not validated":
		do = fmt.Sprintf("ALTER TABLE %s VALIDATE CONSTRAINT %s, when no row breaks it", c.in(w.Name), quote(y.Name))
	case strings.HasPrefix(y.State, "on an index"):
		do = "REINDEX INDEX CONCURRENTLY " + c.in(y.Name)
	}
	c.differs("constraint", w.Name+"."+x.Name, "state", x.State, y.State, "%s", do)
}

func (c *comparison) indexes(w, h table) {
	left := slices.DeleteFunc(slices.Clone(h.Indexes), func(y index) bool { return y.Constraint })
	take := func(fits ...func(index) bool) (index, bool) {
		for _, fit := range fits {
			if i := slices.IndexFunc(left, fit); i >= 0 {
				y := left[i]
				left = slices.Delete(left, i, i+1)
				return y, true
			}
		}
		return index{}, false
	}
	for _, x := range w.Indexes {
		if x.Constraint {
			continue // the constraint was compared, with the state of its index
		}
		name := w.Name + "." + x.Name
		same := func(y index) bool { return y.Definition == x.Definition }
		named := func(y index) bool { return y.Name == x.Name }
		valid := func(y index) bool { return y.State == x.State }
		y, ok := take(
			func(y index) bool { return same(y) && valid(y) && named(y) },
			func(y index) bool { return same(y) && valid(y) },
			func(y index) bool { return same(y) && named(y) }, same)
		if ok {
			c.differs("index", w.Name+"."+y.Name, "state", x.State, y.State, "its build was cut short, or is under way; when nobody builds it, REINDEX INDEX CONCURRENTLY %s", c.in(y.Name))
			continue
		}
		create := c.create(w, x)
		if slices.ContainsFunc(h.Indexes, func(y index) bool { return y.Constraint && same(y) && y.State == x.State }) {
			continue // a constraint has taken it over, which is a finding of its own
		}
		if y, ok := take(named); ok {
			c.refuse("index", name, "definition", x.Definition, y.Definition, "DROP INDEX CONCURRENTLY %s; %s", c.in(y.Name), create)
			continue
		}
		c.refuse("index", name, "", x.Definition, missing, "%s", create)
	}
	for _, y := range left {
		v, do := Warning, "it costs each write; where nobody needs it, DROP INDEX CONCURRENTLY %s"
		switch {
		case y.State != "valid":
			do = "it serves nothing and costs each write; when nobody builds it, DROP INDEX CONCURRENTLY %s"
		case y.Unique && !slices.ContainsFunc(w.Indexes, func(x index) bool { return x.Definition == y.Definition }):
			v, do = Refused, "it refuses rows; DROP INDEX CONCURRENTLY %s"
		}
		c.add(v, "index", w.Name+"."+y.Name, "", nothing, y.Definition, do, c.in(y.Name))
	}
}

// create is the statement that builds an index of the contract.
func (c *comparison) create(w table, x index) string {
	method := strings.TrimPrefix(x.Definition, "unique ")
	unique := ""
	if x.Unique {
		unique = "UNIQUE "
	}
	return fmt.Sprintf("CREATE %sINDEX CONCURRENTLY %s ON %s USING %s", unique, quote(x.Name), c.in(w.Name), method)
}
