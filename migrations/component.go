package migrations

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed sql
var files embed.FS

// Index is an index that a component declares. Its columns are plain, ascending,
// in a btree.
type Index struct {
	// Name and Table are in the component's schema and need no quotes.
	Name, Table string
	Columns     []string
	// Where is the predicate of a partial index as the server prints it, so that it
	// can be compared; "" where it has none.
	Where string
	// Version is the version of the component that builds it.
	Version int
}

// Version is one step of a component.
type Version struct {
	Number int    // from 1, without gaps
	Name   string // what it does, in words_with_underscores
}

func (v Version) String() string { return fmt.Sprintf("%d %s", v.Number, v.Name) }

// component is a schema that we own, as data.
type component struct {
	name string
	// schema is where it goes unless another one is named, made by its first version
	// where it is missing; "" for public, which has to be there, as any other.
	schema  string
	indexes []Index
	// facts are what the SQL files of the component are rendered with besides the
	// schema: declarations that live elsewhere.
	facts map[string]any
	// versions are read off the names of the files in sql/<name>.
	versions []version
}

// version is one file of a component: NUMBER_NAME.sql.
type version struct {
	number  int
	name    string
	file    string
	indexes []Index
}

var components = []*component{runEvents(), domainEvents(), inboxOutbox(), connectionsOf()}

// Components returns the names of the schemas that we own.
func Components() []string {
	var names []string
	for _, c := range components {
		names = append(names, c.name)
	}
	return names
}

// DefaultSchema is the schema of a component's tables where none is named: public,
// or one of the component's own. An unknown component has none.
func DefaultSchema(component string) string {
	c, err := find(component)
	if err != nil {
		return ""
	}
	return cmp.Or(c.schema, "public")
}

// Versions returns the versions of a component that this program knows, oldest
// first. An unknown component has none.
func Versions(component string) []Version {
	c, err := find(component)
	if err != nil {
		return nil
	}
	var all []Version
	for _, v := range c.versions {
		all = append(all, v.public())
	}
	return all
}

// Indexes returns the indexes that a component declares, in the order in which
// they are built. An unknown component has none.
func Indexes(component string) []Index {
	c, err := find(component)
	if err != nil {
		return nil
	}
	var all []Index
	for _, v := range c.versions {
		for _, x := range v.indexes {
			x.Columns = slices.Clone(x.Columns)
			all = append(all, x)
		}
	}
	return all
}

func find(name string) (*component, error) {
	for _, c := range components {
		if c.name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%w %q; known: %s", ErrUnknownComponent, name, strings.Join(Components(), ", "))
}

// declare completes a component from the names of its files. It panics on a
// declaration that does not hold together: every build would carry it, and every
// test fails.
func declare(c *component) *component {
	entries, err := fs.ReadDir(files, c.folder())
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		number, name, ok := strings.Cut(strings.TrimSuffix(e.Name(), ".sql"), "_")
		n, err := strconv.Atoi(number)
		if !ok || err != nil || path.Ext(e.Name()) != ".sql" {
			panic("migrations: not NUMBER_NAME.sql: " + e.Name())
		}
		v := version{number: n, name: name, file: e.Name()}
		for _, x := range c.indexes {
			if x.Version == n {
				v.indexes = append(v.indexes, x)
			}
		}
		c.versions = append(c.versions, v)
	}
	slices.SortFunc(c.versions, func(a, b version) int { return a.number - b.number })
	for i, v := range c.versions {
		if v.number != i+1 {
			panic(fmt.Sprintf("migrations: component %s has no version %d", c.name, i+1))
		}
	}
	for _, x := range c.indexes {
		if x.Version < 1 || x.Version > len(c.versions) {
			panic("migrations: no version builds index " + x.Name)
		}
	}
	return c
}

func (c *component) folder() string { return "sql/" + c.name }

// known is the newest version of c.
func (c *component) known() int { return len(c.versions) }

func (v version) public() Version { return Version{Number: v.number, Name: v.name} }
