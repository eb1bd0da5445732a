package rights

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// document is docs/rights.md: what each command needs, by the names of blocks, and the grants of each block.
type document struct {
	needs  map[string][]string
	grants map[string][]string // a statement each
}

var (
	rowOfTable = regexp.MustCompile(`^\| (.+?) \| (.+?) \|$`)
	blockName  = regexp.MustCompile("^### `([a-z ]+)`$")
	quotedName = regexp.MustCompile("`([a-z ]+)`")
)

func read(t testing.TB) document {
	t.Helper()
	text, err := os.ReadFile("../../docs/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	d := document{needs: map[string][]string{}, grants: map[string][]string{}}
	block, inside := "", false
	for n, line := range strings.Split(string(text), "\n") {
		fail := func(what string) { t.Helper(); t.Fatalf("docs/rights.md:%d: %s: %s", n+1, what, line) }
		switch {
		case inside && line == "```":
			inside = false
		case inside && (strings.HasPrefix(line, "GRANT ") && strings.HasSuffix(line, ";")):
			d.grants[block] = append(d.grants[block], strings.TrimSuffix(line, ";"))
		case inside:
			fail("a block has a GRANT a line, and nothing else")
		case line == "```sql" && block == "":
			fail("SQL under no heading of a block")
		case line == "```sql":
			inside = true
		case strings.HasPrefix(line, "#"):
			block = ""
			if m := blockName.FindStringSubmatch(line); m != nil {
				if block = m[1]; d.grants[block] != nil {
					fail("the block stands twice")
				}
			}
		}
		m := rowOfTable.FindStringSubmatch(line)
		if m == nil || m[1] == "to do this" || strings.HasPrefix(m[1], "---") {
			continue
		}
		name := strings.ReplaceAll(m[1], "`", "")
		if d.needs[name] != nil {
			fail("the row stands twice")
		}
		for _, b := range quotedName.FindAllStringSubmatch(m[2], -1) {
			d.needs[name] = append(d.needs[name], b[1])
		}
	}
	return d
}

// of lists the rights of a row of the table, each of them single.
func (d document) of(t testing.TB, row string) (all []right) {
	t.Helper()
	if d.needs[row] == nil {
		t.Fatalf("docs/rights.md has no row %q", row)
	}
	for _, b := range d.needs[row] {
		if d.grants[b] == nil {
			t.Fatalf("docs/rights.md has no block %q, which %q needs", b, row)
		}
		for _, g := range d.grants[b] {
			rights, err := split(g)
			if err != nil {
				t.Fatalf("docs/rights.md: %v", err)
			}
			all = append(all, rights...)
		}
	}
	return all
}

// right is one privilege on one thing, or on one column of it.
type right struct {
	privilege string
	column    string // "": on the whole
	kind, on  string // "DATABASE", "SCHEMA" or "TABLE", and its name
}

var grantForm = regexp.MustCompile(`^GRANT (.+) ON (DATABASE |SCHEMA |TABLE )?(\S+) TO (\S+)$`)

// split takes a GRANT apart into its single rights.
func split(grant string) (all []right, err error) {
	m := grantForm.FindStringSubmatch(grant)
	if m == nil || m[4] != documented {
		return nil, fmt.Errorf("%s: not of the form GRANT ... ON ... TO %s", grant, documented)
	}
	kind := strings.TrimSpace(m[2])
	if kind == "" {
		kind = "TABLE"
	}
	for rest := m[1]; rest != ""; {
		privilege := rest
		columns := ""
		if at := strings.IndexAny(rest, ",("); at < 0 {
			rest = ""
		} else if privilege = rest[:at]; rest[at] == ',' {
			rest = rest[at+1:]
		} else {
			var found bool
			if columns, rest, found = strings.Cut(rest[at+1:], ")"); !found {
				return nil, fmt.Errorf("%s: a bracket is open", grant)
			}
			rest = strings.TrimPrefix(rest, ",")
		}
		for column := range strings.SplitSeq(columns, ",") {
			all = append(all, right{strings.TrimSpace(privilege), strings.TrimSpace(column), kind, m[3]})
		}
		rest = strings.TrimSpace(rest)
	}
	return all, nil
}

func (r right) String() string {
	if r.column == "" {
		return r.privilege + " ON " + r.kind + " " + r.on
	}
	return r.privilege + " (" + r.column + ") ON " + r.kind + " " + r.on
}

// printed is the right as the command writes the statement that gives it.
func (r right) printed(role string) string {
	what := r.privilege
	if r.column != "" {
		what += ` ("` + r.column + `")`
	}
	on := `"` + strings.ReplaceAll(r.on, ".", `"."`) + `"`
	if r.kind == "SCHEMA" {
		on = "SCHEMA " + on
	}
	return "GRANT " + what + " ON " + on + ` TO "` + role + `";`
}
