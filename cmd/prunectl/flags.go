package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/prunectl/prunectl/policy"
)

// The values of flags. The library's own accept "10m" as a duration and a list given in pieces; these speak the language of
// the policy file, say what to write, and refuse a flag that is given twice with two meanings.

// value is a flag's value: parse reads the text.
type value[T any] struct {
	v     T
	text  string
	set   bool
	parse func(string) (T, error)
}

func (f *value[T]) Set(text string) error {
	// The library sets a flag again under its other name.
	if f.set && text == f.text {
		return nil
	}
	if f.set {
		return errors.New("it is given twice")
	}
	v, err := f.parse(text)
	if err != nil {
		return err
	}
	f.v, f.text, f.set = v, text, true
	return nil
}

// String is empty until the flag is given, so that help shows no default but the one it is told.
func (f *value[T]) String() string {
	if f == nil {
		return ""
	}
	return f.text
}

func textValue() *value[string] {
	return &value[string]{parse: func(s string) (string, error) {
		if strings.TrimSpace(s) == "" {
			return "", errors.New("it is empty")
		}
		return s, nil
	}}
}

func choice(words ...string) *value[string] {
	return &value[string]{parse: func(s string) (string, error) {
		if !slices.Contains(words, s) {
			return "", fmt.Errorf("%q is not known; write %s", s, strings.Join(words, " or "))
		}
		return s, nil
	}}
}

func duration() *value[time.Duration] {
	return &value[time.Duration]{parse: policy.ParseDuration}
}

func number() *value[int] {
	return &value[int]{parse: func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || strings.HasPrefix(s, "+") {
			return 0, fmt.Errorf("%q is no whole number above zero", s)
		}
		return n, nil
	}}
}

func names() *value[[]string] {
	return &value[[]string]{parse: func(s string) ([]string, error) {
		list := strings.Split(s, ",")
		for i := range list {
			if list[i] = strings.TrimSpace(list[i]); list[i] == "" {
				return nil, fmt.Errorf("%q has an empty name in it; write NAME,NAME", s)
			}
		}
		return list, nil
	}}
}

// instant reads a time with its zone, or a day, which begins at midnight UTC.
func instant() *value[time.Time] {
	return &value[time.Time]{parse: func(s string) (time.Time, error) {
		for _, layout := range []string{time.RFC3339, time.DateOnly} {
			if t, err := time.Parse(layout, s); err == nil {
				return t.UTC(), nil
			}
		}
		return time.Time{}, fmt.Errorf("%q is no time; write it as 2026-11-30T02:17:04Z or 2026-11-30", s)
	}}
}

// flag makes the library's flag of a value. A back-quoted word in usage stands for the value in the help.
func flag(v cli.Generic, usage, name string, aliases ...string) cli.Flag {
	return &cli.GenericFlag{Name: name, Aliases: aliases, Usage: usage, Value: v}
}

// sign is a flag without a value; given at either place it counts.
func sign(on *bool, usage, name string, aliases ...string) cli.Flag {
	return &cli.BoolFlag{Name: name, Aliases: aliases, Usage: usage, DisableDefaultText: true, Action: func(_ *cli.Context, set bool) error {
		*on = *on || set
		return nil
	}}
}
