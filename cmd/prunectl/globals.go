package main

import (
	"github.com/urfave/cli/v2"
)

const defaultPolicy = "prunectl.yaml"

// globals are the flags that several commands have. They may stand before the command's name and behind it.
type globals struct {
	policy, dsn, format, logFormat *value[string]
	quiet                          bool
}

func newGlobals() globals {
	return globals{policy: textValue(), dsn: textValue(), format: choice("table", "json"), logFormat: choice("text", "json")}
}

func (g *globals) policyFlag() cli.Flag {
	return flag(g.policy, "read the policy from `FILE` (default: $PRUNECTL_POLICY, else "+defaultPolicy+")", "policy", "f")
}

func (g *globals) dsnFlag() cli.Flag {
	return flag(g.dsn, "connect to `DSN`, a URL or key=value pairs (default: $DATABASE_URL, else the PG* variables)", "dsn")
}

func (g *globals) outputFlag() cli.Flag {
	return flag(g.format, "print the result as `FORMAT`: table, or json for one document (default: $PRUNECTL_OUTPUT, else table)", "output", "o")
}

func (g *globals) quietFlag() cli.Flag {
	return sign(&g.quiet, "print nothing at all when the exit code is 0 and no warning is due", "quiet", "q")
}

func (g *globals) logFlag() cli.Flag {
	return flag(g.logFormat, "print what goes to stderr as `FORMAT`: text, or json for one record a line (default: text)", "log-format")
}

// reporting are the global flags of the commands that report.
func (g *globals) reporting() []cli.Flag {
	return []cli.Flag{g.policyFlag(), g.dsnFlag(), g.outputFlag(), g.quietFlag(), g.logFlag()}
}

// setting is a flag's text, else the variable's, else what holds otherwise. A variable that is set but empty is most
// likely a secret or a setting that did not arrive, so it is refused rather than taken for unset.
func (a *app) setting(f *value[string], variable, otherwise string) (string, error) {
	if f.set {
		return f.v, nil
	}
	text, set := a.env(variable)
	switch {
	case !set:
		return otherwise, nil
	case text == "":
		return "", usagef("%s is set but empty; give it a value or unset it", variable)
	}
	v, err := f.parse(text)
	if err != nil {
		return "", usagef("%s: %w", variable, err)
	}
	return v, nil
}
