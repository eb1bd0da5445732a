package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/policy"
)

// words are what the lines of the report for a person need to know of a sweep.
func words(sw policy.Sweep) report.Words {
	w := report.Words{
		Age: sw.Age, Expires: sw.Expires, Guard: strings.Join(guardWords(sw.Guard), "; "), Children: childWords(sw), Hold: sw.Guard.Hold,
		AtOnce: !sw.Expires && slices.ContainsFunc(windowsOf(sw), policy.Window.IsAtOnce), InForce: inForce(sw),
	}
	if o := sw.Guard.Owner; o != nil {
		w.Owner = o.Table.String()
	}
	if o := sw.Guard.Owed; o != nil {
		w.Owed = o.Table.String()
	}
	if sw.Own != nil {
		w.Floor = policy.FormatDuration(sw.Floor)
		w.Unusable = "zero, negative or over " + policy.FormatDuration(policy.MaxWindow)
		if sw.Own.ZeroNever {
			w.Unusable = "negative or over " + policy.FormatDuration(policy.MaxWindow)
		}
	}
	return w
}

// guardWords say how each part of the guard protects.
func guardWords(g policy.Guard) []string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if g.None != "" {
		add("nothing guards its rows: %q", g.None)
	}
	if g.Hold != "" {
		add("rows whose %s is true are kept", g.Hold)
	}
	switch o := g.Owed; {
	case o == nil:
	case o.Column == "":
		add("rows to which %s refers are kept", o.Table)
	default:
		add("rows to which %s refers are kept, unless %s is %s there", o.Table, o.Column, policy.JoinValues(o.Terminal))
	}
	switch o := g.Owner; {
	case o == nil:
	case o.Final:
		add("owner %s is read without a lock: the policy says that its terminal states are final", o.Table)
	default:
		add("owner %s is locked FOR SHARE", o.Table)
	}
	return parts
}

// childWords say whose rows go with a row, "" for none.
func childWords(sw policy.Sweep) string {
	var parts []string
	if tables := childTables(sw.Children); len(tables) > 0 {
		parts = append(parts, "rows of "+strings.Join(tables, ", ")+" go with them")
	}
	if len(sw.Cascades) > 0 {
		parts = append(parts, "the database may remove rows of "+joinNames(sw.Cascades)+" with them, uncounted")
	}
	return strings.Join(parts, "; ")
}

// childTables are the tables of the children, over all levels, each once.
func childTables(children []policy.Child) []string {
	var tables []string
	for _, c := range children {
		for _, name := range append([]string{c.Table.String()}, childTables(c.Children)...) {
			if !slices.Contains(tables, name) {
				tables = append(tables, name)
			}
		}
	}
	return tables
}

func joinNames(names []policy.Name) string {
	var texts []string
	for _, n := range names {
		texts = append(texts, n.String())
	}
	return strings.Join(texts, ", ")
}

// windowsOf are the windows that a sweep is written with.
func windowsOf(sw policy.Sweep) []policy.Window {
	if len(sw.ByState) == 0 {
		return []policy.Window{sw.Window}
	}
	var all []policy.Window
	for _, w := range sw.ByState {
		all = append(all, w.Window)
	}
	return all
}

// inForce are the values that a sweep goes by, written or not.
func inForce(sw policy.Sweep) string {
	window := sw.Window.String()
	if len(sw.ByState) > 0 {
		var each []string
		for _, w := range sw.ByState {
			each = append(each, w.State.String()+" "+w.Window.String())
		}
		window = strings.Join(each, ", ")
	}
	if sw.Own != nil {
		window += ", or the row's own in " + sw.Own.Column
	}
	d := policy.FormatDuration
	var ceilings []string
	if c := sw.Ceiling.Rows; c < policy.NoCeiling {
		ceilings = append(ceilings, report.Number(c)+" rows")
	}
	if c := sw.Ceiling.Batches; c < policy.NoCeiling {
		ceilings = append(ceilings, report.Number(c)+" batches")
	}
	if c := sw.Ceiling.Time; c < policy.NoCeiling {
		ceilings = append(ceilings, d(c))
	}
	if len(ceilings) == 0 {
		ceilings = append(ceilings, "none")
	}
	parts := []string{"window " + window}
	if sw.Expires {
		parts = []string{"expires " + sw.Age, "grace none"}
		if !sw.Window.IsAtOnce() {
			parts[1] = "grace " + window
		}
	}
	if o := sw.Guard.Owed; o != nil {
		parts = append(parts, "owed "+o.Table.String())
	}
	if sw.Guard.Hold != "" {
		parts = append(parts, "hold "+sw.Guard.Hold)
	}
	if tables := childTables(sw.Children); len(tables) > 0 {
		parts = append(parts, "children "+strings.Join(tables, ", "))
	}
	if len(sw.Cascades) > 0 {
		parts = append(parts, "cascades "+joinNames(sw.Cascades))
	}
	if !sw.Expires && (sw.Own != nil || !slices.Contains(windowsOf(sw), policy.AtOnce)) {
		parts = append(parts, "floor "+d(sw.Floor))
	}
	parts = append(parts, "since "+sw.Since.Format(time.DateOnly),
		"batch "+report.Number(sw.Batch.Limit)+" in "+d(sw.Batch.Target),
		"ceiling "+strings.Join(ceilings, ", "),
		"timeouts "+d(sw.Timeouts.Statement)+" statement, "+d(sw.Timeouts.Lock)+" lock",
	)
	if sw.Pause > 0 {
		parts = append(parts, "pause "+d(sw.Pause))
	}
	if sw.Sync {
		parts = append(parts, "commit sync")
	} else {
		parts = append(parts, "commit async")
	}
	return strings.Join(parts, "; ")
}
