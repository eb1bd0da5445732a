package postgres

import (
	"context"
	"fmt"
	"strings"
)

// recheck are the first minor releases that ask a row's address again after waiting for it. Before them a row that moves
// to a live owner while the batch waits for it would go with its old owner's rows.
var recheck = map[int]int{14: 20, 15: 15, 16: 11, 17: 7, 18: 0}

// checkServer looks at what the server does to every sweep.
func (i *Inspection) checkServer(ctx context.Context, q query) error {
	f := &i.findings
	var num int
	if err := q.row(ctx, "SELECT current_setting('server_version_num')::int").Scan(&num); err != nil {
		return err
	}
	major, minor := num/10000, num%10000
	switch first, known := recheck[major]; {
	case major < 14:
		f.refuse("server", "", "", "PostgreSQL %d is too old; 14 is the first that is supported", major)
	case known && minor < first && i.Sweep.Guard.Owner != nil:
		f.warn("server", "", fmt.Sprintf("update to %d.%d", major, first), "PostgreSQL %d.%d does not look again at a row that changes its owner while a batch waits for it", major, minor)
	default:
		f.ok("server", "", "PostgreSQL %d.%d", major, minor)
	}
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

// The thresholds of a foreign key without an index: a small referencing table costs little to scan.
const (
	smallRows  = 10_000
	smallBytes = 8 << 20
)

// checkDependents looks at what a delete sets off: keys that point at the target, cascades, triggers, rules.
func (i *Inspection) checkDependents(ctx context.Context, q query) error {
	f, t := &i.findings, i.target.table
	keys, err := readKeys(ctx, q, t.oid)
	if err != nil {
		return err
	}
	deferred := 0
	for _, k := range keys {
		i.checkKey(k)
		if k.deferrable {
			deferred++
		}
		if k.onDelete == "c" && k.oid == t.oid {
			i.target.cascades = true
		}
	}
	if deferred > 0 {
		f.ok("foreign key", "", "%d deferrable keys; checked in each batch, not at commit", deferred)
	}
	if i.target.triggers, err = readTriggers(ctx, q, t.oid); err != nil {
		return err
	}
	for _, tr := range i.target.triggers {
		f.warn("trigger", "set", "", "%s fires on DELETE%s", tr.name, silencer(tr.condition))
	}
	rules, err := all(ctx, q, rulesSQL, scanText, t.oid)
	if err != nil {
		return err
	}
	if len(rules) > 0 {
		f.refuse("trigger", "", "", "rule %s rewrites DELETE on %s", strings.Join(rules, ", "), t.name)
	}
	return nil
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

// checkKey refuses a key whose every check would scan a large table. EXPLAIN does not show that cost: it is in a trigger.
func (i *Inspection) checkKey(k foreignKey) {
	f, t := &i.findings, i.target.table
	if !k.indexed {
		quoted := make([]string, len(k.columns))
		for n, c := range k.columns {
			quoted[n] = ident(c)
		}
		schema, name, _ := strings.Cut(k.table, ".")
		fix := fmt.Sprintf("CREATE INDEX CONCURRENTLY ON %s (%s);", ident(schema, name), strings.Join(quoted, ", "))
		small := k.rows >= 0 && k.rows < smallRows || k.rows < 0 && k.bytes < smallBytes
		what := fmt.Sprintf("%s of %s (%s) has no index; each row removed from %s scans it", k.name, k.table, strings.Join(k.columns, ", "), k.referencedBy)
		if small {
			f.warn("foreign key", "", fix, "%s, which is small now", what)
		} else {
			f.refuse("foreign key", "", fix, "%s", what)
		}
	}
	if k.referencedBy != t.name.String() {
		return // a key further down a cascade: only its index matters
	}
	switch k.onDelete {
	case "c":
		f.warn("cascade", "", "", "rows of %s go with their row of %s by %s (ON DELETE CASCADE), and are not counted", k.table, t.name, k.name)
	case "n", "d":
		f.warn("cascade", "", "", "rows of %s lose their reference to %s by %s (ON DELETE SET %s)", k.table, t.name, k.name, map[string]string{"n": "NULL", "d": "DEFAULT"}[k.onDelete])
	default:
		f.ok("foreign key", "", "%s of %s: a row that is still referenced is stuck, and reported", k.name, k.table)
	}
}
