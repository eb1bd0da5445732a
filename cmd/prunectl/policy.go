package main

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/policy/policyfile"
)

// selection are the flags that say which sweeps are meant.
type selection struct{ only, skip *value[[]string] }

func newSelection() selection { return selection{only: names(), skip: names()} }

// policyFile is the name of the policy file.
func (a *app) policyFile() (string, error) {
	name, err := a.setting(a.policy, "PRUNECTL_POLICY", defaultPolicy)
	if err == nil && strings.Contains(name, "://") {
		return "", usagef("the policy file is a connection string; write --dsn for that")
	}
	return name, err
}

// readPolicy reads the policy file. Its faults are policyfile.Errors.
func (a *app) readPolicy(name string) (*policyfile.File, error) {
	data, err := os.ReadFile(name)
	switch {
	case errors.Is(err, os.ErrNotExist) && !a.policy.set && name == defaultPolicy:
		return nil, usagef("there is no %s here; name the policy with --policy or PRUNECTL_POLICY", defaultPolicy)
	case err != nil:
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, usagef("the policy file %s cannot be read: %w", printable(name), err)
	}
	f, err := policyfile.Parse(name, data)
	if err != nil {
		return nil, &codeError{exitUsage, err}
	}
	return f, nil
}

// choose returns the sweeps that are meant, in the order of the file.
func (s selection) choose(f *policyfile.File) ([]policy.Sweep, error) {
	if len(f.Sweeps) == 0 {
		return nil, usagef("%s has no sweeps; what it has are purges, and prunectl purge --tenant NAME carries them out", f.Path)
	}
	var known []string
	for _, sw := range f.Sweeps {
		known = append(known, sw.Name)
	}
	for _, list := range []struct {
		flag  string
		names []string
	}{{"--only", s.only.v}, {"--skip", s.skip.v}} {
		for _, name := range list.names {
			if !slices.Contains(known, name) {
				return nil, usagef("%s: %s has no sweep %s%s", list.flag, f.Path, shown(name),
					suggestion(name, known, "", "it has "+strings.Join(known, ", ")))
			}
		}
	}
	var chosen []policy.Sweep
	for _, sw := range f.Sweeps {
		if (!s.only.set || slices.Contains(s.only.v, sw.Name)) && !slices.Contains(s.skip.v, sw.Name) {
			chosen = append(chosen, sw)
		}
	}
	if len(chosen) == 0 {
		return nil, usagef("--only and --skip leave no sweep of %s", f.Path)
	}
	return chosen, nil
}
