// Command containers runs a command, as a rule the project's tests, with a
// PostgreSQL server in a container, for a machine that has Docker and no
// PostgreSQL. From the repository's root:
//
//	go -C internal/pgtest/containers run . -- go test ./...
//	go -C internal/pgtest/containers run . -image postgres:18-alpine -- go test ./pruner/...
//
// The command runs in the root with PRUNECTL_TEST_DSN set; the container is
// removed when it has ended, and its exit status is ours (of which go run makes
// 1). Tests that start, kill or restart servers of their own need local server
// programs all the same and say so.
//
// It is a module of its own because testcontainers-go needs some fifty others,
// which users of the project should not find in their go.sum. It can be tried
// on any machine with a Docker engine or what stands in for one (Docker
// Desktop, Colima, Podman with its socket). Where there is none, as on the
// machines that build this project, it says so at once and runs nothing; that
// much is tested there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

const usage = "usage: go -C internal/pgtest/containers run . [-image postgres:15-alpine] -- command ..."

func main() {
	image := flag.String("image", "postgres:15-alpine", "`image` of PostgreSQL 14 or later")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, *image, filepath.Join("..", "..", ".."), flag.Args())
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.Exited():
		os.Exit(exit.ExitCode())
	default:
		fmt.Fprintln(os.Stderr, "containers:", err)
		os.Exit(1)
	}
}

// run runs a command in a folder with a server beside it.
func run(ctx context.Context, image, dir string, command []string) (err error) {
	if err := probe(ctx); err != nil {
		return err
	}
	dsn, stop, err := start(ctx, image)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	fmt.Fprintln(os.Stderr, "containers: PRUNECTL_TEST_DSN is a server from", image)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PRUNECTL_TEST_DSN="+dsn)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
