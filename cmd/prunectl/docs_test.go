package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestDocumentedFlags: docs/command.md names every command and every flag, and none that does not exist; its exit codes are
// those of the help, in the help's words.
func TestDocumentedFlags(t *testing.T) {
	data, err := os.ReadFile("../../docs/command.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	a := &app{globals: newGlobals(), out: newOutput(nil, nil)}
	root := a.cli()
	known := append(flagNames(root.Flags), "help", "h")
	var walk func(commands []*cli.Command)
	walk = func(commands []*cli.Command) {
		for _, c := range commands {
			if !strings.Contains(doc, c.Name) {
				t.Errorf("the command %s is not documented", c.Name)
			}
			known = append(known, flagNames(c.Flags)...)
			walk(c.Subcommands)
		}
	}
	walk(root.Commands)
	for _, name := range known {
		if !strings.Contains(doc, "`"+dashed(name)) {
			t.Errorf("the flag %s is not documented", dashed(name))
		}
	}
	for _, m := range regexp.MustCompile("`--([a-z-]+)").FindAllStringSubmatch(doc, -1) {
		if !slices.Contains(known, m[1]) {
			t.Errorf("--%s is documented and does not exist", m[1])
		}
	}
	words := func(s string) string {
		return strings.Join(strings.Fields(strings.NewReplacer("|", " ", "`", "").Replace(s)), " ")
	}
	help := strings.TrimPrefix(exitCodes, "Exit codes:")
	help, _, _ = strings.Cut(help, "Several at once")
	if !strings.Contains(words(doc), words(help)) {
		t.Errorf("the exit codes are not those of the help:\n%s", words(help))
	}
}
