package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// With an engine the command runs beside a server; without one nothing runs,
// at once, and the error says what to do.
func TestRun(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	script := `case $PRUNECTL_TEST_DSN in postgres://*) touch ran; exit 7;; esac`
	began := time.Now()
	err := run(ctx, "postgres:15-alpine", dir, []string{"sh", "-c", script})
	_, ran := os.Stat(filepath.Join(dir, "ran"))
	if probe(ctx) == nil {
		if err == nil || err.Error() != "exit status 7" || ran != nil {
			t.Errorf("with an engine: %v, %v", err, ran)
		}
		return
	}
	if err == nil || ran == nil || time.Since(began) > 15*time.Second {
		t.Errorf("without an engine: %v, after %s", err, time.Since(began))
	}
	for _, want := range []string{"no container engine", "start Docker", "PRUNECTL_TEST_DSN"} {
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestUsage(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "containers")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command(exe).CombinedOutput()
	if err == nil || err.Error() != "exit status 2" || !strings.Contains(string(out), "usage:") {
		t.Errorf("%v: %s", err, out)
	}
}
