package preflight

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed contracts
var files embed.FS

// In a contract the schema's name is one of these: as the server quotes it where it
// prints a definition, which is no more than it needs, or as the migrations quote it
// in the body of a function, which is always.
const (
	schemaPlain  = "${schema}"
	schemaQuoted = "${quoted schema}"
)

// A contract is one version of a component as its migrations make it. What is
// installed is read into the same types.
type contract struct {
	Version Version `json:"version"`
	// Schema is where the component goes unless another one is named. One that is not
	// public is made by the migrations where it is missing.
	Schema    string     `json:"default_schema"`
	Tables    []table    `json:"tables"`
	Functions []function `json:"functions,omitempty"`
}

// table is a relation with all that decides how it behaves. Lists are in the order of
// names, columns in their own.
type table struct {
	Name        string `json:"name"`
	Kind        string `json:"kind"`        // "ordinary table", or what else it is
	Inheritance string `json:"inheritance"` // "none", or from and by whom
	RowSecurity string `json:"row_security"`

	Columns     []column     `json:"columns"`
	Constraints []constraint `json:"constraints,omitempty"`
	Indexes     []index      `json:"indexes,omitempty"`
	Triggers    []trigger    `json:"triggers,omitempty"`
	Policies    []definition `json:"policies,omitempty"`
	Rules       []definition `json:"rules,omitempty"`
}

type column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Collation   string `json:"collation,omitempty"` // "" for the type's own
	Nullability string `json:"nullability"`         // "not null", "nullable", or "not null, not validated"
	Default     string `json:"default,omitempty"`
	Identity    string `json:"identity,omitempty"`  // with the bounds of its sequence
	Generated   string `json:"generated,omitempty"` // stored or virtual, with the expression
	Domain      bool   `json:"domain,omitempty"`    // its type has rules of its own
}

// constraint is a primary key, a unique, foreign key, check or exclusion constraint.
// NOT NULL is the column's: only newer servers have it as a constraint too.
type constraint struct {
	Name       string `json:"name"`
	Definition string `json:"definition"`
	// State is "valid", or why rows may break the constraint all the same.
	State string `json:"state"`
	// Outside says that it is another table's, and refers to ours.
	Outside bool `json:"outside,omitempty"`
}

type index struct {
	Name       string `json:"name"`
	Definition string `json:"definition"` // without names, storage parameters and tablespace
	Unique     bool   `json:"unique,omitempty"`
	Constraint bool   `json:"constraint,omitempty"` // a constraint owns it
	State      string `json:"state"`                // "valid", "not valid"
}

type trigger struct {
	Name       string `json:"name"`
	Definition string `json:"definition"`
	State      string `json:"state"` // "enabled", or how it is not
}

// definition is a policy or a rule.
type definition struct {
	Name       string `json:"name"`
	Definition string `json:"definition"`
}

// function is one that triggers call.
type function struct {
	Name       string `json:"name"` // with the types of its arguments
	Returns    string `json:"returns"`
	Language   string `json:"language"`
	Attributes string `json:"attributes"` // volatility and the like
	Security   string `json:"security"`   // "definer" or "invoker"
	Settings   string `json:"settings"`
	// Public is "may execute" where everybody may.
	Public string `json:"public"`
	Body   string `json:"body"`
}

// known is a component's contracts, oldest version first, as they were generated.
type known struct {
	schema   string // the newest version's
	versions []Version
	texts    [][]byte
}

var contracts = load()

// load reads the embedded contracts. It panics on one that can not be read: every
// build would carry it, and every test fails.
func load() map[string]known {
	folders, err := files.ReadDir("contracts")
	if err != nil {
		panic(err)
	}
	all := map[string]known{}
	for _, folder := range folders {
		entries, err := files.ReadDir(path.Join("contracts", folder.Name()))
		if err != nil {
			panic(err)
		}
		type one struct {
			contract
			text []byte
		}
		var list []one
		for _, e := range entries {
			text, err := files.ReadFile(path.Join("contracts", folder.Name(), e.Name()))
			if err != nil {
				panic(err)
			}
			var c contract
			if err := json.Unmarshal(text, &c); err != nil {
				panic(fmt.Sprintf("preflight: contract %s of %s: %v", e.Name(), folder.Name(), err))
			}
			list = append(list, one{c, text})
		}
		slices.SortFunc(list, func(a, b one) int { return cmp.Compare(a.Version.Number, b.Version.Number) })
		var k known
		for i, o := range list {
			if o.Version.Number != i+1 {
				panic(fmt.Sprintf("preflight: no contract of version %d of %s", i+1, folder.Name()))
			}
			k.schema = o.Schema
			k.versions = append(k.versions, o.Version)
			k.texts = append(k.texts, o.text)
		}
		all[folder.Name()] = k
	}
	return all
}

// newest is the newest version of k.
func (k known) newest() int { return len(k.versions) }

// in returns the contract of a version for one schema, plain being its name as the
// server quotes it.
func (k known) in(number int, schema, plain string) (contract, error) {
	inJSON := func(name string) string {
		text, _ := json.Marshal(name) // a string always can be
		return string(text[1 : len(text)-1])
	}
	text := strings.NewReplacer(schemaPlain, inJSON(plain), schemaQuoted, inJSON(pgx.Identifier{schema}.Sanitize())).Replace(string(k.texts[number-1]))
	var c contract
	err := json.Unmarshal([]byte(text), &c)
	return c, err
}

// find returns the contracts of a component.
func find(component string) (known, error) {
	k, ok := contracts[component]
	if !ok {
		var names []string
		for name := range contracts {
			names = append(names, name)
		}
		slices.Sort(names)
		return known{}, fmt.Errorf("%w %q; known: %s", ErrUnknownComponent, component, strings.Join(names, ", "))
	}
	return k, nil
}
