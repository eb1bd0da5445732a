package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Problem is one fault of a sweep: the key in the words of the policy file ("window.cancelled"), what is wrong, and what
// to write.
type Problem struct {
	Key  string
	What string
	Fix  string

	AtKey bool // the key itself is wrong, rather than its value
}

func (p Problem) String() string {
	text := p.What
	if p.Key != "" {
		text = p.Key + ": " + text
	}
	if p.Fix != "" {
		text += "; " + p.Fix
	}
	return text
}

var sweepName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)

// ownSettings are set by the engine in every batch, or would undo what it relies on; `set` may not touch them.
// row_security is not among them: writing it is how a tenant's policy is chosen on purpose.
var ownSettings = []string{
	"statement_timeout", "lock_timeout", "synchronous_commit", "jit", "plan_cache_mode", "work_mem", "enable_seqscan",
	"enable_bitmapscan", "enable_nestloop", "enable_mergejoin", "enable_sort", "enable_incremental_sort", "max_parallel_workers_per_gather", "transaction_isolation",
	"transaction_read_only", "transaction_deferrable", "default_transaction_isolation", "session_replication_role", "role", "session_authorization",
}

var settingName = regexp.MustCompile(`^[a-z_][a-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)*$`)

// Problems lists every fault of the sweep that can be seen without a database; none means that it may be used.
func (s Sweep) Problems() []Problem {
	floorWritten := s.Floor != 0
	s = s.WithDefaults()
	var ps []Problem
	add := func(key, fix, format string, args ...any) {
		ps = append(ps, Problem{Key: key, What: fmt.Sprintf(format, args...), Fix: fix})
	}
	if !sweepName.MatchString(s.Name) {
		add("", "write a lower-case letter, then letters, digits and _, 48 at most", "%q is no name of a sweep", s.Name)
	}
	switch {
	case s.Table.Table == "":
		add("table", "", "no table is named")
	case s.Table.Schema == "":
		add("table", "write schema.table", "%q has no schema", s.Table.Table)
	}
	if s.Age == "" {
		add(s.AgeKey(), "", "no column is named")
	}
	atKey := func(key, fix, format string, args ...any) {
		ps = append(ps, Problem{Key: key, What: fmt.Sprintf(format, args...), Fix: fix, AtKey: true})
	}
	if s.Expires {
		s.expiresProblems(add, atKey, floorWritten)
	} else {
		s.windowProblems(add, atKey)
		s.atOnceProblems(add, floorWritten)
		s.ownProblems(add)
	}
	s.guardProblems(add)
	s.childProblems(add)
	for _, m := range s.Only {
		if len(m.Values) == 0 {
			add("only."+m.Column, "name at least one value", "the list is empty")
		}
		if i := slices.IndexFunc(m.Values, unheld); i >= 0 {
			add("only."+m.Column, "", "%q holds a NUL, which no column can hold", m.Values[i].String())
		}
	}
	if s.Batch.Limit < 1 || s.Batch.Limit > MaxLimit {
		add("batch.limit", "", "%d is out of range; it is from 1 to %d", s.Batch.Limit, MaxLimit)
	}
	for key, n := range map[string]int64{"batch.target": int64(s.Batch.Target), "ceiling.batches": int64(s.Ceiling.Batches), "ceiling.rows": int64(s.Ceiling.Rows),
		"ceiling.time": int64(s.Ceiling.Time), "timeouts.statement": int64(s.Timeouts.Statement), "timeouts.lock": int64(s.Timeouts.Lock)} {
		if n <= 0 {
			add(key, "", "it must be above zero")
		}
	}
	if s.Pause < 0 {
		add("pause", "", "it must not be negative")
	}
	for _, set := range s.Set {
		switch {
		case !settingName.MatchString(set.Name):
			add("set."+set.Name, "", "%q is no name of a parameter", set.Name)
		case slices.Contains(ownSettings, strings.ToLower(set.Name)):
			add("set."+set.Name, "leave it out", "%s is set by prunectl in each batch", set.Name)
		case unheld(Text(set.Value)):
			add("set."+set.Name, "", "%q holds a NUL, which no parameter can hold", set.Value)
		}
	}
	slices.SortStableFunc(ps, func(a, b Problem) int { return strings.Compare(a.Key, b.Key) })
	return ps
}

type adder func(key, fix, format string, args ...any)

func (s Sweep) windowProblems(add, atKey adder) {
	floor := func(key string, w Window) {
		if !w.IsNever() && !w.IsAtOnce() && w.Duration() < s.Floor {
			add(key, fmt.Sprintf("lengthen it, or write floor: %s in this sweep", w), "%s is below the floor of %s", w, FormatDuration(s.Floor))
		}
	}
	switch {
	case s.Floor < time.Second:
		add("floor", "", "it must be at least 1s")
	case s.Floor%time.Second != 0:
		add("floor", "", "it must be of whole seconds")
	}
	if len(s.ByState) == 0 {
		floor("window", s.Window)
		return
	}
	if s.Guard.State == nil {
		add("window", "give guard.state, or one window for all", "windows by state need a guard by the row's own state")
		return
	}
	for i, sw := range s.ByState {
		key := "window." + sw.State.String()
		floor(key, sw.Window)
		if !slices.Contains(s.Guard.State.Terminal, sw.State) {
			if same := slices.IndexFunc(s.Guard.State.Terminal, alike(sw.State)); same >= 0 {
				atKey(key, "write it alike in both", "the state is %s here and %s in guard.terminal", spelled(sw.State), spelled(s.Guard.State.Terminal[same]))
			} else {
				atKey(key, "", "window names state %q, which is not in guard.terminal", sw.State.String())
			}
		}
		if slices.ContainsFunc(s.ByState[:i], func(o StateWindow) bool { return alike(sw.State)(o.State) }) {
			atKey(key, "", "state %q has two windows", sw.State.String())
		}
	}
	for _, t := range s.Guard.State.Terminal {
		if !slices.ContainsFunc(s.ByState, func(o StateWindow) bool { return alike(t)(o.State) }) {
			add("window", fmt.Sprintf("add %s: never to keep it", t), "no window for the terminal state %q", t.String())
		}
	}
}

func (s Sweep) guardProblems(add adder) {
	g := s.Guard
	some := g.Ended || g.State != nil || g.Owner != nil || g.Owed != nil || g.Hold != ""
	switch {
	case g.None == "" && !some:
		add("guard", `give ended, state, owner, owed or hold, or none: "why nothing is owed"`, "nothing says which rows are still needed")
	case g.None != "" && some:
		add("guard.none", "", "none stands alone")
	case g.None != "" && len([]rune(strings.TrimSpace(g.None))) < 10:
		add("guard.none", "write the reason, 10 characters or more", "%q says too little", g.None)
	}
	if g.State != nil {
		listProblems(add, "guard", g.State.Column, g.State.Terminal, g.State.Live)
	}
	if o := g.Owner; o != nil {
		listProblems(add, "guard.owner", o.Column, o.Terminal, o.Live)
		if o.Table.Table == "" || o.Table.Schema == "" {
			add("guard.owner.table", "", "no owner table is named")
		}
		if len(o.Key) == 0 {
			add("guard.owner.key", "map columns of the target to the key of the owner", "no key leads to the owner")
		}
		for i, k := range o.Key {
			if k.Target == "" || k.Owner == "" {
				add("guard.owner.key", "", "a column of the key has no name")
			}
			if slices.ContainsFunc(o.Key[:i], func(p KeyPair) bool { return p.Owner == k.Owner || p.Target == k.Target }) {
				add("guard.owner.key", "", "a column stands twice in the key")
			}
		}
	}
	if o := g.Owed; o != nil {
		referenceProblems(add, "guard.owed", o.Table, o.Key)
		if o.Column != "" || len(o.Terminal) > 0 {
			listProblems(add, "guard.owed", o.Column, o.Terminal, nil)
		}
	}
}

func listProblems(add adder, key, column string, terminal, live []Value) {
	if column == "" {
		add(key+".state", "", "no state column is named")
	}
	if len(terminal) == 0 {
		add(key+".terminal", "list the states from which nothing is owed any more", "no terminal state is given")
	}
	seen := map[string]string{} // by text: 1 and "1" are the same state of a column
	for _, l := range []struct {
		name   string
		values []Value
	}{{"terminal", terminal}, {"live", live}} {
		for _, v := range l.values {
			switch {
			case v.IsNull():
				add(key+"."+l.name, "leave it out: a null state always protects", "null is no state")
			case unheld(v):
				add(key+"."+l.name, "", "state %q holds a NUL, which no column can hold", v.String())
			case seen[v.String()] != "":
				add(key+"."+l.name, "keep one of them", "state %q is in %s already", v.String(), seen[v.String()])
			}
			seen[v.String()] = l.name
		}
	}
}

// unheld reports whether PostgreSQL has no way to hold the value. Without its NUL it would be another one.
func unheld(v Value) bool { return strings.ContainsRune(v.text, 0) }

// alike matches values that a column cannot tell from v, however they were written.
func alike(v Value) func(Value) bool {
	return func(o Value) bool { return !v.IsNull() && !o.IsNull() && v.text == o.text }
}

// spelled is the value as it was written, for a message about spelling.
func spelled(v Value) string {
	switch v.kind {
	case KindText:
		return fmt.Sprintf("the text %q", v.text)
	case KindInt:
		return "the number " + v.text
	}
	return v.String()
}
