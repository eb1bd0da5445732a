package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// nothing is what is expected where something is too many; missing what is found
// where something is not there.
const (
	nothing = "nothing"
	missing = "nothing of this name"
)

// comparison holds what is installed to a contract, and collects the differences.
type comparison struct {
	component, schema string
	findings          []Finding
}

func (c *comparison) refused() bool { return Report{Findings: c.findings}.refused() > 0 }

func (c *comparison) refuse(kind, name, aspect, expected, found, do string, args ...any) {
	c.add(Refused, kind, name, aspect, expected, found, do, args...)
}

func (c *comparison) add(v Verdict, kind, name, aspect, expected, found, do string, args ...any) {
	or := func(s string) string {
		if s == "" {
			return "none"
		}
		return s
	}
	c.findings = append(c.findings, Finding{Result: v, Kind: kind, Name: name, Aspect: aspect, Expected: or(expected), Found: or(found), Do: fmt.Sprintf(do, args...)})
}

// differs refuses an aspect in which two texts differ.
func (c *comparison) differs(kind, name, aspect, expected, found, do string, args ...any) {
	if expected != found {
		c.refuse(kind, name, aspect, expected, found, do, args...)
	}
}

// in quotes the name of something in the schema.
func (c *comparison) in(name string) string { return pgx.Identifier{c.schema, name}.Sanitize() }

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// notInstalled says what stands in the way of an installation: relations of the
// component's names that no ledger knows.
func (c *comparison) notInstalled(r *Report, p place, want, have contract) {
	if !p.exists {
		if want.Schema != "public" {
			return // its migrations make it
		}
		c.refuse("schema", r.Schema, "", "a schema", missing, "CREATE SCHEMA %s, then %s", quote(r.Schema), r.migrate())
		return
	}
	for _, h := range have.Tables {
		if h.Name != ledger(c.component) {
			c.refuse("table", h.Name, "", "nothing before version 1 is recorded in "+ledger(c.component), h.Kind,
				"where a restore lost the ledger, restore that too; a table of somebody else's is in the way: install into another schema")
			continue
		}
		// Empty it is as good as none; not the ledger at all, it is in the way.
		for _, w := range want.Tables {
			if w.Name == h.Name {
				c.table(w, h)
			}
		}
	}
}

func (c *comparison) compare(want, have contract) {
	for _, w := range want.Tables {
		i := slices.IndexFunc(have.Tables, func(h table) bool { return h.Name == w.Name })
		if i < 0 {
			c.refuse("table", w.Name, "", w.Kind, missing,
				"restore it; where its rows are truly not needed, drop the component's tables and its ledger %s, and migrate anew", c.in(ledger(c.component)))
			continue
		}
		c.table(w, have.Tables[i])
	}
	for _, w := range want.Functions {
		i := slices.IndexFunc(have.Functions, func(h function) bool { return h.Name == w.Name })
		if i < 0 {
			c.refuse("function", w.Name, "", "a function that triggers call", missing, remake)
			continue
		}
		c.function(w, have.Functions[i])
	}
}

func (c *comparison) table(w, h table) {
	if w.Kind != h.Kind {
		do := "drop or rename it, and restore the table"
		if h.Kind == "unlogged table" {
			do = "a crash empties it; ALTER TABLE " + c.in(w.Name) + " SET LOGGED"
		}
		c.refuse("table", w.Name, "kind", w.Kind, h.Kind, "%s", do)
		if h.Kind != "unlogged table" {
			return // what a view has of columns and rules says nothing more
		}
	}
	c.differs("table", w.Name, "inheritance", w.Inheritance, h.Inheritance, "end it with ALTER TABLE ... NO INHERIT or DETACH PARTITION; rows of another table appear in one of them")
	c.differs("table", w.Name, "row security", w.RowSecurity, h.RowSecurity,
		"rows would be hidden from whoever is not their owner; ALTER TABLE %s DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY", c.in(w.Name))
	c.columns(w, h)
	c.constraints(w, h)
	c.indexes(w, h)
	c.triggers(w, h)
	c.definitions("policy", w.Name, h.Policies, w.Policies)
	c.definitions("rule", w.Name, h.Rules, w.Rules)
}

// definitions compares policies, or rules.
func (c *comparison) definitions(kind, table string, have, want []definition) {
	drop := func(name string) string {
		return fmt.Sprintf("DROP %s %s ON %s", strings.ToUpper(kind), quote(name), c.in(table))
	}
	for _, w := range want {
		i := slices.IndexFunc(have, func(h definition) bool { return h.Name == w.Name })
		if i < 0 {
			c.refuse(kind, table+"."+w.Name, "", w.Definition, missing, "make it again as expected")
			continue
		}
		c.differs(kind, table+"."+w.Name, "definition", w.Definition, have[i].Definition, "%s, and make it again as expected", drop(w.Name))
	}
	for _, h := range have {
		if !slices.ContainsFunc(want, func(w definition) bool { return w.Name == h.Name }) {
			c.refuse(kind, table+"."+h.Name, "", nothing, h.Definition, "%s", drop(h.Name))
		}
	}
}
