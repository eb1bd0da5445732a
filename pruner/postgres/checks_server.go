package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prunectl/prunectl/policy"
)

// recheck are the first minor releases that ask a row's address again after waiting for it. Before them a row that moves
// to a live owner, or to another parent, while the batch waits for it would go with the rows of its old one.
var recheck = map[int]int{14: 20, 15: 15, 16: 11, 17: 7, 18: 0}

// checkVersion refuses a server that is too old, and warns of a minor release that matters where rows go by another row's
// say: they have an owner, or are children.
func (f *findings) checkVersion(major, minor int, byOthers bool) {
	switch first, known := recheck[major]; {
	case major < 14:
		f.refuse("server", "", "", "PostgreSQL %d is too old; 14 is the first that is supported", major)
	case known && minor < first && byOthers:
		f.warn("server", "", fmt.Sprintf("update to %d.%d", major, first), "PostgreSQL %d.%d does not look again at a row that changes its owner or its parent while a batch waits for it", major, minor)
	default:
		f.ok("server", "", "PostgreSQL %d.%d", major, minor)
	}
}

// checkServer looks at what the server does to every sweep.
func (i *Inspection) checkServer(ctx context.Context, q query) error {
	f := &i.findings
	var num int
	if err := q.row(ctx, "SELECT current_setting('server_version_num')::int").Scan(&num); err != nil {
		return err
	}
	f.checkVersion(num/10000, num%10000, i.Sweep.Guard.Owner != nil || len(i.Sweep.Children) > 0)
	if !i.target.table.statistics {
		f.warn("server", "", "", "track_counts is off; removed rows are counted one by one, which costs up to a quarter more time")
	}
	for _, set := range i.Sweep.Set {
		if err := trial(ctx, q, "SELECT set_config("+literal(set.Name)+", "+literal(set.Value)+", true)"); err != nil {
			f.refuse("server", "set."+set.Name, "", "%s cannot be set: %s", set.Name, plain(err))
		}
	}
	return nil
}

// trial runs a statement in a savepoint that is always rolled back.
func trial(ctx context.Context, q query, sql string) error {
	sp, err := q.tx.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = sp.Rollback(ctx) }()
	_, err = sp.Exec(ctx, sql, q.mode)
	return err
}

// checkDependents looks at what a delete sets off, from the target and from the children that are named: keys that point at
// them, cascades, triggers, rules.
func (i *Inspection) checkDependents(ctx context.Context, q query) error {
	f, t := &i.findings, i.target.table
	deferred := 0
	reached := map[string]bool{}
	for n, of := range i.removes() {
		keys, err := readKeys(ctx, q, of.oid)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if id := fmt.Sprintf("%d %s", k.oid, k.name); reached[id] {
				continue
			} else {
				reached[id] = true
			}
			i.checkKey(k)
			if k.deferrable {
				deferred++
			}
			if k.onDelete == "c" {
				reached[k.table] = true
				i.target.cascades = i.target.cascades || k.oid == t.oid
			}
		}
		triggers, err := readTriggers(ctx, q, of.oid)
		if err != nil {
			return err
		}
		if n == 0 {
			i.target.triggers = triggers
		}
		for _, c := range i.target.children {
			if c.table.oid == of.oid {
				c.triggers = triggers
			}
		}
		on := ""
		if n > 0 {
			on = " on " + of.name.String()
		}
		for _, tr := range triggers {
			if !tr.row && !tr.before {
				// once a statement, after it: it keeps no row, and costs by the batch
				f.ok("trigger", "set", "%s%s fires once after each DELETE", tr.name, on)
				continue
			}
			f.warn("trigger", "set", "", "%s%s fires on DELETE%s", tr.name, on, silencer(tr.condition))
		}
		rules, err := all(ctx, q, rulesSQL, scanText, of.oid)
		if err != nil {
			return err
		}
		if len(rules) > 0 {
			f.refuse("trigger", "", "", "rule %s rewrites DELETE on %s", strings.Join(rules, ", "), of.name)
		}
	}
	if deferred > 0 {
		f.ok("foreign key", "", "%d deferrable keys; checked in each batch, not at commit", deferred)
	}
	for n, c := range i.Sweep.Cascades {
		if !reached[c.Schema+"."+c.Table] {
			f.warn("cascade", fmt.Sprintf("cascades.%d", n), "leave it out", "no ON DELETE CASCADE leads from what the sweep removes to %s", c)
		}
	}
	return nil
}

// removes lists the tables from which the sweep removes rows, each once: the target first.
func (i *Inspection) removes() []*table {
	ts := []*table{i.target.table}
	for _, c := range i.target.children {
		if !slices.ContainsFunc(ts, func(t *table) bool { return t.oid == c.table.oid }) {
			ts = append(ts, c.table)
		}
	}
	return ts
}

// silencer says which parameter a trigger's condition asks for, where it asks for one: `set` can give it.
func silencer(definition string) string {
	_, rest, ok := strings.Cut(definition, "current_setting('")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "'")
	return fmt.Sprintf("; its condition reads %s, which set can give", name)
}

// checkKey refuses a key whose every check would scan a large table, which EXPLAIN does not show, since it is in a trigger;
// and a cascade that the sweep does not name.
func (i *Inspection) checkKey(k foreignKey) {
	f, t := &i.findings, i.target.table
	named := slices.ContainsFunc(i.target.children, func(c *child) bool { return c.table.oid == k.oid })
	if slices.ContainsFunc(i.target.children, func(c *child) bool { return c.goesBefore(k, t) }) {
		f.ok("foreign key", "children", "%s of %s: its rows go before their row of %s", k.name, k.table, k.referencedBy)
		return // its index is needed with the key or without
	}
	if !k.indexed {
		schema, name, _ := strings.Cut(k.table, ".")
		fix := createIndex(policy.Name{Schema: schema, Table: name}, k.columns)
		what := fmt.Sprintf("%s of %s (%s) has no index; each row removed from %s scans it", k.name, k.table, strings.Join(k.columns, ", "), k.referencedBy)
		if small(k.rows, k.bytes) {
			f.warn("foreign key", "", fix, "%s, which is small now", what)
		} else {
			f.refuse("foreign key", "", fix, "%s", what)
		}
	}
	accepted := slices.ContainsFunc(i.Sweep.Cascades, func(n policy.Name) bool { return n.Schema+"."+n.Table == k.table })
	switch {
	case k.onDelete == "c" && (named || accepted):
		f.ok("cascade", "cascades", "rows of %s go with their row of %s by %s (ON DELETE CASCADE), and are not counted", k.table, k.referencedBy, k.name)
	case k.onDelete == "c":
		f.refuse("cascade", "cascades", fmt.Sprintf("name %s in children, so that its rows are counted, or in cascades, to accept that they are not", k.table),
			"rows of %s go with their row of %s by %s (ON DELETE CASCADE), and the table is in neither children nor cascades", k.table, k.referencedBy, k.name)
	case !slices.ContainsFunc(i.removes(), func(t *table) bool { return t.oid == k.references }):
		// a key further down a cascade: only its index matters
	case k.onDelete == "n" || k.onDelete == "d":
		f.warn("cascade", "", "", "rows of %s lose their reference to %s by %s (ON DELETE SET %s)", k.table, k.referencedBy, k.name, map[string]string{"n": "NULL", "d": "DEFAULT"}[k.onDelete])
	default:
		f.ok("foreign key", "", "%s of %s: a row that is still referenced is stuck, and reported", k.name, k.table)
	}
}

// goesBefore reports whether the key is the one by which the child's rows are found and removed first.
func (c *child) goesBefore(k foreignKey, target *table) bool {
	parent := target
	if c.parent != nil {
		parent = c.parent.table
	}
	columns := c.childColumns()
	return c.table.oid == k.oid && parent.oid == k.references && len(columns) == len(k.columns) &&
		!slices.ContainsFunc(k.columns, func(name string) bool { return !slices.Contains(columns, name) })
}
