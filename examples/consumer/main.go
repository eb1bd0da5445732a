package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/policy"
)

const usage = "consumer setup | send N | replay SINCE | run [flags] | show; DATABASE_URL says where"

func main() {
	if err := command(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, to io.Writer) error {
	dsn, schema := os.Getenv("DATABASE_URL"), os.Getenv("CONSUMER_SCHEMA")
	if len(args) == 0 || dsn == "" {
		return errors.New("usage: " + usage)
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	switch verb, args := args[0], args[1:]; {
	case verb == "setup" && len(args) == 0:
		return setup(ctx, pool, schema, to)
	case verb == "send" && len(args) == 1:
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 1 {
			return fmt.Errorf("send %s: it is a number of payments, from 1", args[0])
		}
		return send(ctx, pool, n, to)
	case verb == "replay" && len(args) == 1:
		since, err := policy.ParseDuration(args[0])
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		return replay(ctx, pool, schema, since, to)
	case verb == "run":
		return run(ctx, pool, schema, args)
	case verb == "show" && len(args) == 0:
		return show(ctx, pool, schema, to)
	}
	return errors.New("usage: " + usage)
}
