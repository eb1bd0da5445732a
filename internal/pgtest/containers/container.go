package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
)

// probe says whether there is a container engine that answers.
func probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	p, err := testcontainers.NewDockerProvider()
	if err == nil {
		err = p.Health(ctx)
		_ = p.Close()
	}
	if err != nil {
		return fmt.Errorf("no container engine answers (%w); start Docker, or test without it: "+
			"install PostgreSQL's server programs, or set PRUNECTL_TEST_DSN", err)
	}
	return nil
}

// start starts a server with the settings that the tests' own server has. The
// password is there because the port is open to the engine's whole network.
func start(ctx context.Context, image string) (dsn string, stop func() error, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // the image may have to be fetched
	defer cancel()
	c, err := postgres.Run(ctx, image,
		postgres.WithPassword(rand.Text()),
		postgres.BasicWaitStrategies(),
		testcontainers.WithCmdArgs(
			"-c", "full_page_writes=off", "-c", "autovacuum=off", "-c", "timezone=UTC",
			"-c", "shared_buffers=256MB", "-c", "max_connections=200"))
	stop = func() error { return testcontainers.TerminateContainer(c) }
	if err == nil {
		dsn, err = c.ConnectionString(ctx, "sslmode=disable")
	}
	if err != nil {
		_ = stop()
		return "", nil, fmt.Errorf("start a server from %s: %w", image, err)
	}
	return dsn, stop, nil
}
