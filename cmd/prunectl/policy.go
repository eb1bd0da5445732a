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
	names, err := s.names(f, "sweep", sweepNames(f))
	if err != nil {
		return nil, err
	}
	return sweepsOf(f, names), nil
}

// sweepNames are the names of the file's sweeps.
func sweepNames(f *policyfile.File) (names []string) {
	for _, sw := range f.Sweeps {
		names = append(names, sw.Name)
	}
	return names
}

// sweepsOf are the file's sweeps of these names.
func sweepsOf(f *policyfile.File, names []string) []policy.Sweep {
	return slices.DeleteFunc(slices.Clone(f.Sweeps), func(sw policy.Sweep) bool { return !slices.Contains(names, sw.Name) })
}

// names returns the names that are meant, of those that are known; what says what they are of.
func (s selection) names(f *policyfile.File, what string, known []string) ([]string, error) {
	for _, list := range []struct {
		flag  string
		names []string
	}{{"--only", s.only.v}, {"--skip", s.skip.v}} {
		for _, name := range list.names {
			if !slices.Contains(known, name) {
				return nil, usagef("%s: %s has no %s %s%s", list.flag, f.Path, what, shown(name),
					suggestion(name, known, "", "it has "+strings.Join(known, ", ")))
			}
		}
	}
	chosen := slices.DeleteFunc(slices.Clone(known), func(name string) bool {
		return s.only.set && !slices.Contains(s.only.v, name) || slices.Contains(s.skip.v, name)
	})
	if len(chosen) == 0 {
		return nil, usagef("--only and --skip leave no %s of %s", what, f.Path)
	}
	return chosen, nil
}
