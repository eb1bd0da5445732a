package preflight

import (
	"fmt"
	"slices"
	"strings"
)

// remake says where the text of a function is.
const remake = "make it again from the migrations' SQL (migrations.SQL prints it)"

// triggers are compared by name: it decides in which order they fire.
func (c *comparison) triggers(w, h table) {
	drop := func(name string) string { return fmt.Sprintf("DROP TRIGGER %s ON %s", quote(name), c.in(w.Name)) }
	for _, x := range w.Triggers {
		name := w.Name + "." + x.Name
		i := slices.IndexFunc(h.Triggers, func(y trigger) bool { return y.Name == x.Name })
		if i < 0 {
			c.refuse("trigger", name, "", x.Definition, missing, "what it should have done since it went is not done; %s", x.Definition)
			continue
		}
		y := h.Triggers[i]
		c.differs("trigger", name, "definition", x.Definition, y.Definition, "%s; %s", drop(y.Name), x.Definition)
		c.differs("trigger", name, "state", x.State, y.State, "what it should have done meanwhile is not done; ALTER TABLE %s ENABLE TRIGGER %s", c.in(w.Name), quote(y.Name))
	}
	for _, y := range h.Triggers {
		if !slices.ContainsFunc(w.Triggers, func(x trigger) bool { return x.Name == y.Name }) {
			c.refuse("trigger", w.Name+"."+y.Name, "", nothing, y.Definition, "%s", drop(y.Name))
		}
	}
}

func (c *comparison) function(w, h function) {
	c.differs("function", w.Name, "result", w.Returns, h.Returns, remake)
	c.differs("function", w.Name, "language", w.Language, h.Language, remake)
	c.differs("function", w.Name, "attributes", w.Attributes, h.Attributes, remake)
	c.differs("function", w.Name, "security", w.Security, h.Security, remake)
	c.differs("function", w.Name, "settings", w.Settings, h.Settings, remake)
	c.differs("function", w.Name, "public", w.Public, h.Public, "REVOKE ALL ON FUNCTION %s.%s FROM PUBLIC", quote(c.schema), w.Name)
	if expected, found := firstDifference(w.Body, h.Body); w.Body != h.Body {
		c.refuse("function", w.Name, "body", expected, found, remake)
	}
}

// firstDifference is the first line in which two texts differ, in both.
func firstDifference(a, b string) (string, string) {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	line := func(lines []string, i int) string {
		if i >= len(lines) {
			return fmt.Sprintf("an end before line %d", i+1)
		}
		return fmt.Sprintf("in line %d %q", i+1, strings.TrimSpace(lines[i]))
	}
	for i := range max(len(as), len(bs)) {
		if i >= len(as) || i >= len(bs) || as[i] != bs[i] {
			return line(as, i), line(bs, i)
		}
	}
	return "", ""
}
