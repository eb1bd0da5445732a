package main

import (
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"
)

// What the flag package says is wrong, and what of it is for a person.
var (
	notDefined = regexp.MustCompile(`^flag provided but not defined: -(.*)$`)
	needsValue = regexp.MustCompile(`^flag needs an argument: -(.*)$`)
	badValue   = regexp.MustCompile(`(?s)^invalid value ".*" for flag -([a-z-]+): (.*)$`)
	badSign    = regexp.MustCompile(`(?s)^invalid boolean (?:value ".*" for -|flag )([a-z-]+): .*$`)
	twoForms   = regexp.MustCompile(`^Cannot use two forms of the same flag: (\S+) (\S+)$`)
)

// usageError puts a wrong flag into one line. It is the only thing that is printed: the help would hide it.
func usageError(c *cli.Context, err error, _ bool) error {
	text := err.Error()
	for _, form := range []struct {
		re   *regexp.Regexp
		line func(m []string) error
	}{
		{notDefined, func(m []string) error {
			return usagef("unknown flag %s%s", dashed(m[1]), suggestion(m[1], longNames(c.Command.Flags), "--", "write "+helpOf(c)))
		}},
		{needsValue, func(m []string) error { return usagef("%s needs a value", dashed(m[1])) }},
		{badValue, func(m []string) error { return usagef("%s: %s", dashed(m[1]), m[2]) }},
		{badSign, func(m []string) error { return usagef("%s takes no value", dashed(m[1])) }},
		{twoForms, func(m []string) error {
			return usagef("%s and %s are the same flag; give one of them", dashed(m[1]), dashed(m[2]))
		}},
	} {
		if m := form.re.FindStringSubmatch(text); m != nil {
			return form.line(m)
		}
	}
	return usagef("%s; write %s", text, helpOf(c))
}

func helpOf(c *cli.Context) string { return c.Command.HelpName + " --help" }

func dashed(name string) string {
	name = printable(name)
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// longNames are the flags that may be suggested: not those of one letter.
func longNames(flags []cli.Flag) []string {
	var names []string
	for _, name := range append(flagNames(flags), "help") {
		if len(name) > 1 && !strings.HasPrefix(name, "-") {
			names = append(names, name)
		}
	}
	return names
}
