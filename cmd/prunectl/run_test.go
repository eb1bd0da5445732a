package main

import (
	"context"
	"os"
	"strings"
	"testing"
)

// TestPanic: a panic is a failure. The runtime would make it code 2, which is ours for wrong usage.
func TestPanic(t *testing.T) {
	var stdout, stderr strings.Builder
	code := run(context.Background(), process{args: []string{"check"}, stdout: &stdout, stderr: &stderr,
		env: func(string) (string, bool) { panic("no environment") }})
	if code != exitFailed || stdout.String() != "" {
		t.Errorf("exit code %d, stdout %q", code, stdout.String())
	}
	contains(t, stderr.String(), "prunectl: internal error: no environment; please report it")
}

type fault struct{}

func (fault) String() string { panic("no name") }
func (fault) Signal()        {}

// TestPanicOfTheListener: neither is one in the goroutine that hears the signals.
func TestPanicOfTheListener(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- fault{}
	var stderr strings.Builder
	heard := false
	code := run(context.Background(), process{args: []string{"migrate", "status"}, stdout: &strings.Builder{}, stderr: &stderr, signals: signals,
		env: func(name string) (string, bool) {
			if name == "DATABASE_URL" && !heard {
				heard = true
				eventually(t, "the signal is taken", func() bool { return len(signals) == 0 })
			}
			return "postgres://127.0.0.1:1/x", name == "DATABASE_URL"
		}})
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	contains(t, stderr.String(), "prunectl: internal error: no name")
}
