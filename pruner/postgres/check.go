package postgres

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict is the result of a check.
type Verdict string

// The results of a check. A refused sweep is not run.
const (
	OK      Verdict = "ok"
	Warning Verdict = "warning"
	Refused Verdict = "refused"
)

// Check is one finding of the inspection. Its Name is stable: server, rights, rls, kind, column, age, state, index, ties,
// foreign key, cascade, trigger, owner lock, replica identity, vacuum.
type Check struct {
	Name   string
	Key    string // the key of the policy file it is about, "" for the sweep
	Result Verdict
	Detail string
	Fix    string // a statement to run or what to write; "" for none
}

// findings collects checks.
type findings struct{ checks []Check }

func (f *findings) add(v Verdict, name, key, fix, format string, args ...any) {
	f.checks = append(f.checks, Check{Name: name, Key: key, Result: v, Detail: fmt.Sprintf(format, args...), Fix: fix})
}

func (f *findings) refuse(name, key, fix, format string, args ...any) {
	f.add(Refused, name, key, fix, format, args...)
}

func (f *findings) warn(name, key, fix, format string, args ...any) {
	f.add(Warning, name, key, fix, format, args...)
}

func (f *findings) ok(name, key, format string, args ...any) {
	f.add(OK, name, key, "", format, args...)
}

// refused reports whether a check of this name refused the sweep; of any name for "".
func (f *findings) refused(name string) bool {
	return slices.ContainsFunc(f.checks, func(c Check) bool { return c.Result == Refused && (name == "" || c.Name == name) })
}

// kinds are the relations that are no ordinary table, by pg_class.relkind.
var kinds = map[string]string{
	"v": "a view", "m": "a materialized view", "f": "a foreign table", "p": "a partitioned table", "i": "an index", "I": "an index",
	"S": "a sequence", "c": "a composite type", "t": "a TOAST table",
}

// checkKind refuses by kind whatever has no rows with an address of their own.
func (f *findings) checkKind(t *table, key, what string) {
	switch {
	case t.kind == "p":
		f.refuse("kind", key, "name its partitions as sweeps of their own", "%s is a partitioned table, which is planned, not in this version", t.name)
	case t.kind != "r":
		f.refuse("kind", key, "name an ordinary table", "%s is %s, not a table", t.name, kinds[t.kind])
	case t.parent:
		f.refuse("kind", key, "name the tables that inherit from it, each as a sweep", "%s is an inheritance parent: rows of other tables appear in it", t.name)
	case t.method != "heap":
		f.refuse("kind", key, "", "%s has the access method %s; rows are removed by their address in a heap", t.name, t.method)
	default:
		f.ok("kind", key, "%s is an ordinary %s", t.name, what)
	}
}

// columnsLike lists the columns of a table for a message, the most alike first.
func columnsLike(t *table) string {
	var names []string
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	if len(names) > 12 {
		names = append(names[:12], "...")
	}
	return strings.Join(names, ", ")
}
