package policyfile

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/xrash/smetrics"
)

// key is a key of the language. The one table of them is used to know a key, to say that it is planned, to suggest one,
// and by a test to hold the reference to it.
type key struct {
	path     string // its place: mappings and the key, joined by dots; those of a sweep start with "sweep.", those of a purge with "purges."
	due      string // what is due as its value; "" for a planned key
	example  string // the value in an example
	required bool
}

func (k key) planned() bool { return k.due == "" }

// name is the key alone, scope the mapping it belongs in.
func (k key) name() string  { return k.path[strings.LastIndexByte(k.path, '.')+1:] }
func (k key) scope() string { return k.path[:max(strings.LastIndexByte(k.path, '.'), 0)] }

// String is the key as a reader of the file would call it.
func (k key) String() string { return strings.TrimPrefix(k.path, "sweep.") }

var keys = []key{
	{"version", "a whole number", "1", true},
	{"defaults", "a mapping", "{schema: public}", false},
	{"defaults.schema", "a name", "public", false},
	{"defaults.floor", "a duration", "1d", false},
	{"defaults.batch", "a mapping", "{limit: 2000}", false},
	{"defaults.batch.limit", "a whole number", "5000", false},
	{"defaults.batch.target", "a duration", "100ms", false},
	{"defaults.ceiling", "a mapping", "{rows: none}", false},
	{"defaults.ceiling.batches", "a whole number or none", "1000", false},
	{"defaults.ceiling.rows", "a whole number or none", "1000000", false},
	{"defaults.ceiling.time", "a duration or none", "10min", false},
	{"defaults.timeouts", "a mapping", "{lock: 200ms}", false},
	{"defaults.timeouts.statement", "a duration", "30s", false},
	{"defaults.timeouts.lock", "a duration", "500ms", false},
	{"defaults.pause", "a duration or none", "50ms", false},
	{"defaults.commit", "async or sync", "sync", false},
	{"budget", "a mapping", "{time: 20min}", false},
	{"budget.time", "a duration or none", "30min", false},
	{"budget.rows", "a whole number or none", "5000000", false},
	{"budget.turn", "a duration", "30s", false},
	{"hours", "", "", false},
	{"sweeps", "a mapping of names to sweeps", "{old_jobs: {...}}", true},
	{"purges", "a mapping of names to purges", "{tenant: {...}}", false},

	{"sweep.table", "a name, or [schema, table]", "public.jobs", true},
	{"sweep.age", "the name of a column, or a mapping", "finished_at", true},
	{"sweep.age.column", "the name of a column", "finished_at", true},
	{"sweep.age.as", "instant", "instant", false},
	{"sweep.age.since", "a date", "2015-01-01", false},
	{"sweep.age.zone", "", "", false},
	{"sweep.expires", "the name of a column, or a mapping", "expires_at", false},
	{"sweep.expires.column", "the name of a column", "expires_at", true},
	{"sweep.expires.as", "instant", "instant", false},
	{"sweep.expires.since", "a date", "2015-01-01", false},
	{"sweep.expires.zone", "", "", false},
	{"sweep.expires.grace", "a duration", "1d", false},
	{"sweep.window", "a duration, never, at_once, or a mapping of states to durations", "90d", true},
	{"sweep.row_window", "a mapping", "{column: keep_seconds, unit: s}", false},
	{"sweep.row_window.column", "the name of a column", "keep_seconds", true},
	{"sweep.row_window.unit", "s, min, h or d", "s", false},
	{"sweep.row_window.zero", "never", "never", false},
	{"sweep.overrides", "", "", false},
	{"sweep.floor", "a duration", "1h", false},
	{"sweep.only", "a mapping of columns to values", "{queue: mail}", false},
	{"sweep.guard", "a mapping", "{ended: true}", true},
	{"sweep.guard.none", "the reason, as a text", `"why nothing is owed"`, false},
	{"sweep.guard.ended", "true", "true", false},
	{"sweep.guard.state", "the name of a column", "state", false},
	{"sweep.guard.terminal", "a list of states", "[done, failed]", false},
	{"sweep.guard.live", "a list of states", "[queued, running]", false},
	{"sweep.guard.final", "true or false", "true", false},
	{"sweep.guard.owner", "a mapping", "{table: runs, ...}", false},
	{"sweep.guard.owner.table", "a name, or [schema, table]", "public.runs", true},
	{"sweep.guard.owner.key", "a mapping of columns to columns of the owner", "{run_id: id}", true},
	{"sweep.guard.owner.state", "the name of a column", "status", true},
	{"sweep.guard.owner.terminal", "a list of states", "[completed, failed]", true},
	{"sweep.guard.owner.live", "a list of states", "[running]", false},
	{"sweep.guard.owner.final", "true or false", "true", false},
	{"sweep.guard.owner.orphans", "keep", "keep", false},
	{"sweep.guard.owner.ownerless", "keep", "keep", false},
	{"sweep.guard.owed", "a mapping", "{table: job_mails, ...}", false},
	{"sweep.guard.owed.table", "a name, or [schema, table]", "public.job_mails", true},
	{"sweep.guard.owed.key", "a mapping of columns to the columns that refer to them", "{id: job_id}", true},
	{"sweep.guard.owed.state", "the name of a column", "status", false},
	{"sweep.guard.owed.terminal", "a list of states", "[sent, dead]", false},
	{"sweep.guard.hold", "the name of a column", "on_hold", false},
	{"sweep.guard.newest", "", "", false},
	{"sweep.children", "a list of mappings", "[{table: public.job_logs, key: {id: job_id}}]", false},
	{"sweep.children.table", "a name, or [schema, table]", "public.job_logs", true},
	{"sweep.children.key", "a mapping of columns to the columns that refer to them", "{id: job_id}", true},
	{"sweep.children.children", "a list of mappings", "[{table: public.log_lines, key: {id: log_id}}]", false},
	{"sweep.cascades", "a list of tables", "[public.job_tags]", false},
	{"sweep.detach", "", "", false},
	{"sweep.frees", "", "", false},
	{"sweep.partitions", "", "", false},
	{"sweep.index", "a name", "jobs_finished_at_idx", false},
	{"sweep.batch", "a mapping", "{limit: 500}", false},
	{"sweep.batch.limit", "a whole number", "500", false},
	{"sweep.batch.target", "a duration", "50ms", false},
	{"sweep.ceiling", "a mapping", "{rows: 200000}", false},
	{"sweep.ceiling.batches", "a whole number or none", "1000", false},
	{"sweep.ceiling.rows", "a whole number or none", "none", false},
	{"sweep.ceiling.time", "a duration or none", "5min", false},
	{"sweep.timeouts", "a mapping", "{lock: 200ms}", false},
	{"sweep.timeouts.statement", "a duration", "10s", false},
	{"sweep.timeouts.lock", "a duration", "200ms", false},
	{"sweep.pause", "a duration or none", "50ms", false},
	{"sweep.set", "a mapping of parameters to texts", `{que.skip_notify: "true"}`, false},
	{"sweep.commit", "async or sync", "sync", false},
	{"sweep.overlaps", "a list of sweeps", "[old_jobs]", false},

	{"purges.key", "the name of a column", "tenant_id", false},
	{"purges.tables", "a list of mappings", "[{table: public.messages}, {table: public.jobs, column: org}]", true},
	{"purges.tables.table", "a name, or [schema, table]", "public.jobs", true},
	{"purges.tables.column", "the name of a column", "org", false},
	{"purges.tables.children", "a list of mappings", "[{table: public.job_logs, key: {id: job_id}}]", false},
	{"purges.tables.children.table", "a name, or [schema, table]", "public.job_logs", true},
	{"purges.tables.children.key", "a mapping of columns to the columns that refer to them", "{id: job_id}", true},
	{"purges.tables.children.children", "a list of mappings", "[{table: public.log_lines, key: {id: log_id}}]", false},
	{"purges.exclude", "a mapping of tables to reasons", `{public.audit_log: "kept for ten years by law"}`, false},
	{"purges.batch", "a mapping", "{limit: 500}", false},
	{"purges.batch.limit", "a whole number", "500", false},
	{"purges.batch.target", "a duration", "50ms", false},
	{"purges.timeouts", "a mapping", "{lock: 200ms}", false},
	{"purges.timeouts.statement", "a duration", "10s", false},
	{"purges.timeouts.lock", "a duration", "200ms", false},
	{"purges.pause", "a duration or none", "50ms", false},
	{"purges.set", "a mapping of parameters to texts", `{app.purging: "on"}`, false},
}

// inPlaceOf are the keys in whose place another of their mapping stands, by its path.
var inPlaceOf = map[string][]string{"sweep.expires": {"age", "window"}, "purges": {"sweeps"}}

// words are what other tools call a key of ours, in its own part of the file. A word without a key is answered with the
// hint alone.
var words = []struct{ word, path, hint string }{
	{"keep", "sweep.window", ""},
	{"retention", "sweep.window", ""},
	{"retain", "sweep.window", ""},
	{"ttl", "sweep.window", ""},
	{"max_age", "sweep.window", ""},
	{"column", "sweep.age", ""},
	{"expiration", "sweep.expires", ""},
	{"valid_until", "sweep.expires", ""},
	{"own_window", "sweep.row_window", ""},
	{"child", "sweep.children", ""},
	{"legal_hold", "sweep.guard.hold", ""},
	{"where", "sweep.only", ""},
	{"filter", "sweep.only", ""},
	{"batch_size", "sweep.batch.limit", ""},
	{"max_rows", "sweep.ceiling.rows", ""},
	{"max_batches", "sweep.ceiling.batches", ""},
	{"max_time", "sweep.ceiling.time", ""},
	{"sleep", "sweep.pause", ""},
	{"status", "sweep.guard.state", ""},
	{"states", "sweep.guard.terminal", ""},
	{"tenant", "purges.key", ""},
	{"tenant_id", "purges.key", ""},
	{"column", "purges.key", ""},
	{"tenant", "purges.tables.column", ""},
	{"tenant_id", "purges.tables.column", ""},
	{"key", "purges.tables.column", ""},
	{"child", "purges.tables.children", ""},
	{"keep", "purges.exclude", ""},
	{"skip", "purges.exclude", ""},
	{"ignore", "purges.exclude", ""},
	{"except", "purges.exclude", ""},
	{"sleep", "purges.pause", ""},
	{"enabled", "", "a sweep that exists and does nothing is how tables grow; comment the sweep out to switch it off"},
	{"disabled", "", "a sweep that exists and does nothing is how tables grow; comment the sweep out to switch it off"},
	{"include", "", "no file includes another; write each sweep out"},
	{"includes", "", "no file includes another; write each sweep out"},
	{"dsn", "", "a policy holds no connection; give it with --dsn, DATABASE_URL or PG*"},
}

// notOfPurges are the keys of a sweep that a purge has not, and why.
var notOfPurges = map[string]string{
	"age":        "a purge goes by whose a row is, not by how old it is",
	"expires":    "a purge goes by whose a row is, not by how old it is",
	"window":     "a purge goes by whose a row is, not by how old it is",
	"row_window": "a purge goes by whose a row is, not by how old it is",
	"floor":      "a purge goes by whose a row is, not by how old it is",
	"only":       "a purge removes everything of a tenant; name the tables that keep their rows under exclude",
	"guard":      "a purge removes everything of a tenant, whatever its state; name the tables that keep their rows under exclude",
	"cascades":   "a purge counts what it removes; name the table under tables, or under the children of one",
	"index":      "a purge picks the index of each table by itself",
	"ceiling":    "a purge has no ceiling, and ends when nothing of the tenant is left",
	"commit":     "the commits of a purge always wait for the disk",
	"overlaps":   "a purge may remove what others remove",
}

// part is the part of the file that a mapping belongs to: "sweep", "purges", or "" for the top, `defaults` and `budget`.
func part(scope string) string {
	switch first, _, _ := strings.Cut(scope, "."); first {
	case "sweep", "purges":
		return first
	}
	return ""
}

// scope is the keys of a mapping, in the order of the table.
func scope(name string) []key {
	var out []key
	for _, k := range keys {
		if k.scope() == name {
			out = append(out, k)
		}
	}
	return out
}

func lookup(path string) (key, bool) {
	i := slices.IndexFunc(keys, func(k key) bool { return k.path == path })
	if i < 0 {
		return key{}, false
	}
	return keys[i], true
}

// unknown says what is wrong with a key that the mapping does not have: planned, not ours, or most likely another. The
// second result are the keys of the mapping that it most likely stands for, which are then not missing.
func unknown(in, name string) (message string, meant []string) {
	for _, k := range keys {
		if k.planned() && k.name() == name {
			return "key " + name + " is planned, not in this version", nil
		}
	}
	for _, w := range words {
		if w.word == name && w.hint != "" {
			return "key " + name + " is not part of the language: " + w.hint, nil
		}
	}
	if why, ok := notOfPurges[name]; ok && part(in) == "purges" {
		return "key " + name + " is one of a sweep: " + why, nil
	}
	message = "unknown key " + strconv.Quote(name)
	k, ok := nearest(in, name)
	switch {
	case !ok:
		return message + "; there is " + names(scope(in)), nil
	case k.scope() == in:
		return message + "; did you mean " + k.name() + "?", append([]string{k.name()}, inPlaceOf[k.path]...)
	case k.scope() == "sweep":
		return message + "; did you mean " + k.name() + ", a key of the sweep itself?", nil
	case k.scope() == "purges":
		return message + "; did you mean " + k.name() + ", a key of the purge itself?", nil
	case k.scope() == "":
		return message + "; did you mean " + k.name() + ", a key at the top of the file?", nil
	}
	return message + "; did you mean " + k.String() + "?", nil
}

// nearest is the key that was most likely meant: one of this mapping before one of another, the fewest edits first. In a
// sweep it is none of a purge, nor the other way round.
func nearest(in, name string) (key, bool) {
	type candidate struct {
		key   key
		edits int
	}
	var found []candidate
	try := func(word string, k key, far int) {
		edits := distance(word, name)
		switch {
		case edits <= len(word)/3:
		case len(word) > 3 && strings.HasPrefix(name, word):
			edits = 2
		default:
			return
		}
		found = append(found, candidate{k, edits + far})
	}
	for _, k := range keys {
		// A key of `defaults` that is misplaced is one of the sweep.
		switch {
		case k.planned(), part(in) != "" && part(k.scope()) != "" && part(k.scope()) != part(in):
		case k.scope() == in:
			try(k.name(), k, 0)
		case part(in) == "purges" && k.name() != name: // its mappings have keys that are alike
		case !strings.HasPrefix(k.path, "defaults."):
			try(k.name(), k, 3)
		}
	}
	for _, w := range words {
		if k, ok := lookup(w.path); ok {
			// A word of a purge is one of its own mapping: whose a row is has a key at two levels.
			if in != k.scope() && (part(in) == "purges" || part(w.path) == "purges") {
				continue
			}
			if here, ok := lookup(join(in, k.name())); ok && !here.planned() {
				k = here
			}
			try(w.word, k, 0)
		}
	}
	if len(found) == 0 {
		return key{}, false
	}
	return slices.MinFunc(found, func(a, b candidate) int { return cmp.Compare(a.edits, b.edits) }).key, true
}

// distance is the number of edits between two words, without regard to case; of words too unlike to be meant it is any
// number that says so.
func distance(a, b string) int {
	if apart := max(len(a), len(b)) - min(len(a), len(b)); apart > len(a)/3+1 {
		return apart
	}
	return smetrics.WagnerFischer(strings.ToLower(a), strings.ToLower(b), 1, 1, 1)
}

// closest is the word that was most likely meant.
func closest(word string, among []string) (string, bool) {
	if len(among) == 0 {
		return "", false
	}
	best := slices.MinFunc(among, func(a, b string) int { return cmp.Compare(distance(a, word), distance(b, word)) })
	return best, distance(best, word) <= len(best)/3
}

// names lists keys for a message.
func names(ks []key) string {
	var out []string
	for _, k := range ks {
		if !k.planned() {
			out = append(out, k.name())
		}
	}
	return strings.Join(out, ", ")
}
