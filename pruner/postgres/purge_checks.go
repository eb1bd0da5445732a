package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// checkPurgeColumns looks for every column that the purge names, and at the keys of children.
func (i *PurgeInspection) checkPurgeColumns() {
	f := &i.findings
	for n, s := range i.steps {
		path := i.paths[n]
		if !s.child() {
			if _, ok := s.top().column(s.whom.name); !ok {
				f.refuse("column", path+".column", "", "%s has no column %q; it has %s", s.top().name, s.whom.name, columnsLike(s.top()))
			}
			continue
		}
		for _, name := range i.tenantColumns() {
			if _, ok := s.table().column(name); ok {
				f.refuse("column", path, fmt.Sprintf("- {table: %s, column: %s} among tables, before %s", s.table().name, name, s.chain[len(s.chain)-2].table.name),
					"%s has a column %s itself, and so is no child; declare it as a table", s.table().name, name)
				break
			}
		}
		i.checkChildKey(path+".key", s.chain[len(s.chain)-2].table, s.chain[len(s.chain)-1])
	}
}

// tenantColumns are the names by which a column that says whose a row is can be known: those that the purge gives, but a
// name that is the key of the tenants' own table, such as id, says nothing elsewhere.
func (i *PurgeInspection) tenantColumns() (names []string) {
	if i.Purge.Key != "" {
		names = append(names, i.Purge.Key)
	}
	for _, s := range i.steps {
		if name := s.spec.Column; !s.child() && !slices.Contains(names, name) && !s.top().unique([]string{name}, name) {
			names = append(names, name)
		}
	}
	return names
}

// checkChildKey refuses a key that compares unlike values, or that could find two rows, of two tenants.
func (i *PurgeInspection) checkChildKey(path string, parent *table, l tier) {
	f := &i.findings
	var columns []string
	for _, k := range l.key {
		pc, has := parent.column(k.Parent)
		cc, have := l.table.column(k.Child)
		switch {
		case !has:
			f.refuse("column", path, "", "%s has no column %q; it has %s", parent.name, k.Parent, columnsLike(parent))
			return
		case !have:
			f.refuse("column", path, "", "%s has no column %q; it has %s", l.table.name, k.Child, columnsLike(l.table))
			return
		case pc.base != cc.base || pc.collation != cc.collation:
			f.refuse("column", path, "", "%s.%s is %s and %s.%s is %s; a key is compared in one type and collation", parent.name, k.Parent, pc.typname, l.table.name, k.Child, cc.typname)
			return
		}
		columns = append(columns, k.Parent)
	}
	if !parent.unique(columns, columns...) {
		f.refuse("column", path, "", "(%s) is no primary key or unique index of %s; a row could refer to rows of two tenants", strings.Join(columns, ", "), parent.name)
	}
}

// purgeTables are the tables of the steps, each once.
func (i *PurgeInspection) purgeTables() (ts []*table) {
	for _, s := range i.steps {
		if !slices.ContainsFunc(ts, func(t *table) bool { return t.oid == s.table().oid }) {
			ts = append(ts, s.table())
		}
	}
	return ts
}

// checkPurgeRights names every right that is missing at once, with the grants that would give them, and refuses row
// security that would hide rows: of the tables, and of those that refer to them.
func (i *PurgeInspection) checkPurgeRights() {
	f, role := &i.findings, ident(i.role)
	var missing, grants []string
	need := func(have bool, what, grant string) {
		if !have && !slices.Contains(missing, what) {
			missing = append(missing, what)
			grants = append(grants, "GRANT "+grant+" TO "+role+";")
		}
	}
	for _, t := range i.purgeTables() {
		need(t.canUse, "USAGE on schema "+t.name.Schema, "USAGE ON SCHEMA "+ident(t.name.Schema))
		need(t.canSelect, "SELECT on "+t.name.String(), "SELECT ON "+tableName(t.name))
		need(t.canDelete, "DELETE on "+t.name.String(), "DELETE ON "+tableName(t.name))
		need(t.canUpdate, fmt.Sprintf("UPDATE on one column of %s, to lock a row before it goes", t.name), fmt.Sprintf("UPDATE (%s) ON %s", ident(harmless(t, i.decisiveOf(t))), tableName(t.name)))
		if t.rlsActive {
			i.refuseRowSecurity(t.name.String())
		}
	}
	for _, s := range i.steps {
		for _, k := range s.refs {
			need(k.canUse, "USAGE on schema "+k.table.Schema, "USAGE ON SCHEMA "+ident(k.table.Schema))
			var cols []string
			for _, p := range k.pairs {
				cols = append(cols, ident(p.Child))
			}
			need(k.canSelect || slices.Contains(missing, "SELECT on "+k.table.String()), fmt.Sprintf("SELECT (%s) on %s", strings.ReplaceAll(strings.Join(cols, ", "), `"`, ""), k.table), fmt.Sprintf("SELECT (%s) ON %s", strings.Join(cols, ", "), tableName(k.table)))
			if k.rlsActive {
				i.refuseRowSecurity(k.table.String())
			}
		}
	}
	if len(missing) > 0 {
		f.refuse("rights", "", strings.Join(grants, " "), "missing: %s", strings.Join(missing, "; "))
	} else {
		f.ok("rights", "", "all that the purge needs is granted")
	}
}

func (i *PurgeInspection) refuseRowSecurity(name string) {
	detail := fmt.Sprintf("row security would hide rows of %s from this role", name)
	if !slices.ContainsFunc(i.findings.checks, func(c Check) bool { return c.Name == "rls" && c.Detail == detail }) {
		i.findings.refuse("rls", "", "purge with a role that has BYPASSRLS", "%s", detail)
	}
}

// decisiveOf are the columns of a table by which its rows, or those that refer to them, are the tenant's.
func (i *PurgeInspection) decisiveOf(t *table) (cols []string) {
	for _, s := range i.steps {
		if s.top().oid == t.oid {
			cols = append(cols, s.whom.name)
		}
		for n, l := range s.chain {
			for _, k := range l.key {
				if l.table.oid == t.oid {
					cols = append(cols, k.Child)
				}
				if s.chain[n-1].table.oid == t.oid {
					cols = append(cols, k.Parent)
				}
			}
		}
	}
	return cols
}

// readDependents reads what a delete of the step's rows sets off: the keys that point at them, triggers and rules.
func (i *PurgeInspection) readDependents(ctx context.Context, q query, s *removal) (err error) {
	f, t := &i.findings, s.table()
	if s.refs, err = readReferences(ctx, q, t); err != nil {
		return err
	}
	if s.triggers, err = readTriggers(ctx, q, t.oid); err != nil {
		return err
	}
	rules, err := all(ctx, q, rulesSQL, scanText, t.oid)
	if err != nil {
		return err
	}
	if i.saidBefore(s) {
		return nil
	}
	path := i.pathOf(s)
	for _, tr := range s.triggers {
		switch {
		case !tr.row && !tr.before:
			f.ok("trigger", path, "%s on %s fires once after each DELETE", tr.name, t.name)
		case tr.row && tr.before:
			f.warn("trigger", path, "", "%s on %s fires on DELETE, and can keep a row%s", tr.name, t.name, silencer(tr.condition))
		default:
			f.warn("trigger", path, "", "%s on %s fires on DELETE%s", tr.name, t.name, silencer(tr.condition))
		}
	}
	if len(rules) > 0 {
		f.refuse("trigger", path, "", "rule %s rewrites DELETE on %s", strings.Join(rules, ", "), t.name)
	}
	return nil
}

// saidBefore reports whether an earlier step is about the same table.
func (i *PurgeInspection) saidBefore(s *removal) bool {
	for _, o := range i.steps {
		if o == s {
			return false
		}
		if o.table().oid == s.table().oid {
			return true
		}
	}
	return false
}

func (i *PurgeInspection) pathOf(s *removal) string { return i.paths[slices.Index(i.steps, s)] }

// checkWalks chooses how the tenant's rows of each table are gone through, and says what a worse way costs.
func (i *PurgeInspection) checkWalks() {
	f := &i.findings
	for n, s := range i.steps {
		top := i.steps[i.topOf(n)]
		s.walk, s.keys, s.index = walkOf(s.top(), s.whom)
		if s.child() {
			if s.walk == byIndex {
				s.walk, s.index = byPages, ""
			}
			i.checkChildIndex(s, i.paths[n])
			continue
		}
		t := s.top()
		better := []string{s.whom.name}
		if key := t.uniqueKey(); key != nil {
			better = append(better, slices.DeleteFunc(key, func(k string) bool { return k == s.whom.name })...)
		}
		fix := createIndex(t.name, better)
		switch s.walk {
		case byKey:
			f.ok("index", i.paths[n], "%s walks the rows of one tenant in the order of a key", s.index)
		case byIndex:
			f.warn("index", i.paths[n], fix, "%s leads with %s and does not order the rows of one tenant; each batch walks what those before it have left", s.index, s.whom.name)
		default:
			f.warn("index", i.paths[n], fix, "no index of %s leads with %s; %s", t.name, s.whom.name, readPages(t))
		}
		if s.walk == byIndex && slices.ContainsFunc(i.steps[:n], func(o *removal) bool { return o.child() && i.topOf(slices.Index(i.steps, o)) == n }) {
			f.warn("index", i.paths[n], fix, "the children of %s are found by reading it whole: %s", top.top().name, readPages(t))
		}
	}
}

// readPages says how many pages of a table are read.
func readPages(t *table) string {
	n := t.bytes / 8192
	if n == 1 {
		return "its one page is read"
	}
	return fmt.Sprintf("all of its %d pages are read, %d of them a batch at most", n, maxPages)
}

// walkOf chooses how the rows of one tenant are walked.
func walkOf(t *table, whom column) (walk, []column, string) {
	serves := func(x index) bool {
		return x.method == "btree" && x.valid && x.predicate == "" && len(x.columns) > 0 && x.columns[0] == whom.name && x.collations[0] == whom.collation
	}
	for _, x := range t.indexes {
		if serves(x) && x.unique && x.immediate && len(x.columns) == 1 {
			return byKey, []column{whom}, x.name
		}
	}
	if keys, name := keysetOf(t, []string{whom.name}, true); len(keys) > 0 {
		return byKey, keys, name
	}
	for _, x := range t.indexes {
		if serves(x) {
			return byIndex, nil, x.name
		}
	}
	return byPages, nil, ""
}

// checkChildIndex asks for the index by which the rows that refer to one row are found.
func (i *PurgeInspection) checkChildIndex(s *removal, path string) {
	f, l := &i.findings, &s.chain[len(s.chain)-1]
	t := l.table
	columns := l.columns()
	l.keyset, _ = keysetOf(t, columns, false)
	for _, x := range t.indexes {
		if x.method != "brin" && x.valid && leads(x, columns) && (x.predicate == "" || notNulls.MatchString(x.predicate)) {
			f.ok("index", path, "%s of %s finds what refers to a row", x.name, t.name)
			return
		}
	}
	what := fmt.Sprintf("no index of %s leads with (%s); each row of %s scans it", t.name, strings.Join(columns, ", "), s.chain[len(s.chain)-2].table.name)
	if small(t.rows, t.bytes) {
		f.warn("index", path, createIndex(t.name, columns), "%s, which is small now", what)
	} else {
		f.refuse("index", path, createIndex(t.name, columns), "%s", what)
	}
}

// columns are those by which the rows of the table refer to the table before it.
func (l tier) columns() (cols []string) {
	for _, k := range l.key {
		cols = append(cols, k.Child)
	}
	return cols
}
