package policyfile

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed ready/*.yaml
var ready embed.FS

// ReadyNames are the names that [Ready] knows, in alphabetical order.
func ReadyNames() []string {
	entries, err := ready.ReadDir("ready")
	if err != nil {
		panic(err) // it is embedded
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Ready is the text of the ready policy of one of our components, with its documented defaults, for [Parse] or to be
// written to a file. It fails on a name that is not in [ReadyNames].
func Ready(name string) ([]byte, error) {
	data, err := ready.ReadFile("ready/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("no ready policy is called %q; there is %s", name, strings.Join(ReadyNames(), ", "))
	}
	return data, nil
}
