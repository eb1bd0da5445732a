package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
)

// TestUsage: a command line that is wrong starts nothing.
func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-no-such-flag"}, {"more"}, {"-row-events", "0"}, {"-max-time", "-1s"}, {"-random", "-1"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); !errors.As(err, new(usageError)) {
			t.Errorf("%q: %v; want an error of usage", args, err)
		}
	}
	if err := run(t.Context(), []string{"-h"}, io.Discard, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}

// teller calls back at what it is told.
type teller func()

func (t teller) Write(p []byte) (int, error) {
	t()
	return len(p), nil
}

// TestSignal: a torture that is ended early says what it did, and judges it.
func TestSignal(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out strings.Builder
	if err := run(ctx, []string{"-random", "7"}, &out, teller(cancel)); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"random number 7,", "ended: a signal", "nothing due is left after the last drains"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not have %q:\n%s", want, out.String())
		}
	}
}
