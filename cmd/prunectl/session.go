package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/internal/report"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/policy/policyfile"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// session is one run of a command that reports: the policy, the server, and the report that grows.
type session struct {
	*app
	report *report.Report
	file   *policyfile.File
	sweeps []policy.Sweep // those that are meant, in the order of the file
	purges []policy.Purge // the same, of a check
	pool   *pgxpool.Pool
	db     *postgres.DB
	now    time.Time // from which cutoffs are computed
	warned bool      // something is to be seen although the exit code is 0

	components []*component   // those that the sweeps are over, and those that are named
	policies   []*inboxPolicy // those of inboxes and outboxes that are swept
}

// run runs body and prints its report, also where body fails: what was done before is in it. body returns the exit
// code, or the error that ended the run as a whole.
func (a *app) run(command string, body func(*session) (int, error)) error {
	format, err := a.setting(a.format, "PRUNECTL_OUTPUT", "table")
	if err != nil {
		return err
	}
	if a.logFormat.v == "json" {
		a.out.jsonLog()
	}
	a.out.quiet(a.globals.quiet)
	s := &session{app: a, report: report.New(command, version())}
	start := time.Now()
	code, err := body(s)
	if s.pool != nil {
		s.pool.Close()
	}
	if a.interrupt.code() != 0 && errors.Is(err, context.Canceled) {
		err = nil // the signal says it
	}
	if err != nil {
		code = codeOf(err)
		s.fail(err)
	}
	code = s.finish(start, code)
	return s.print(format, code, err)
}

// finish fills what is known at the end. The exit code of a signal comes before all others.
func (s *session) finish(start time.Time, code int) int {
	if c := s.interrupt.code(); c != 0 {
		code = c
		s.report.Signal = s.interrupt.name()
	}
	s.report.ExitCode = code
	s.report.Elapsed = time.Since(start).Seconds()
	s.report.Sum()
	return code
}

// fail puts the error that ended the run into the report.
func (s *session) fail(err error) {
	var faults policyfile.Errors
	if errors.As(err, &faults) {
		for _, f := range faults {
			s.report.Problems = append(s.report.Problems, problem(f))
		}
		word := "faults"
		if len(faults) == 1 {
			word = "fault"
		}
		err = fmt.Errorf("%s has %d %s", faults[0].File, len(faults), word)
	}
	s.report.Error = errorOf(err)
}

// print writes the report to stdout, and then to stderr what went wrong.
func (s *session) print(format string, code int, err error) error {
	if code == exitDone && s.globals.quiet && !s.warned {
		return nil
	}
	s.out.release()
	if format == "json" {
		_ = s.report.JSON(s.out.stdout) // the sink remembers it
	} else {
		_ = s.report.Table(s.out.stdout)
	}
	var faults policyfile.Errors
	switch {
	case errors.As(err, &faults):
		for _, f := range faults {
			s.out.tell("%s", printable(f.Error()))
		}
	case err != nil:
		s.out.say("%s", printable(err.Error()))
	}
	if code != exitDone && err == nil {
		s.out.say("%s (exit %d)", s.outcome(code), code)
	}
	return reported(code)
}

// open reads the policy and chooses the sweeps.
func (s *session) open(sel selection) error {
	err := s.openFile()
	if err == nil {
		s.sweeps, err = sel.choose(s.file)
	}
	return err
}

// openFile reads the policy.
func (s *session) openFile() error {
	name, err := s.policyFile()
	if err != nil {
		return err
	}
	s.report.Policy = &report.Policy{File: name}
	if s.file, err = s.readPolicy(name); err != nil {
		return err
	}
	s.report.Policy.SHA256 = s.file.SHA256
	return nil
}

// connect finds the server and says where it is. The clock is the server's, or --as-of.
func (s *session) connect(ctx context.Context, asOf *value[time.Time]) (postgres.Server, error) {
	config, err := s.connConfig()
	if err != nil {
		return postgres.Server{}, err
	}
	if s.pool, err = dial(ctx, config); err != nil {
		return postgres.Server{}, err
	}
	s.db = postgres.Pool(s.pool)
	server, err := postgres.Identify(ctx, s.db)
	if err != nil {
		return server, err
	}
	s.now = server.Now
	s.out.tell("%s", whereabouts(server))
	if s.report.Window != nil {
		s.out.tell("%s", s.report.Window)
	}
	s.report.Database = &report.Database{Host: server.Host, Port: server.Port, Name: server.Database, Role: server.Role, Server: shortVersion(server.Version)}
	if asOf.set {
		if asOf.v.After(server.Now) {
			return server, usagef("--as-of %s is in the future; it is %s on the server", report.Stamp(asOf.v), report.Stamp(server.Now))
		}
		s.now = asOf.v
		s.report.AsOf = &asOf.v
		s.out.tell("as of %s", report.Stamp(asOf.v))
	}
	at := server.Now
	s.report.Now = &at
	return server, nil
}

// problem is a fault of the policy file in the report.
func problem(f policyfile.Error) report.Problem {
	at := fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	return report.Problem{Position: at, Message: strings.TrimPrefix(f.Error(), at+": ")}
}

// errorOf is an error in the report.
func errorOf(err error) *report.Error {
	if err == nil {
		return nil
	}
	e := &report.Error{Message: printable(err.Error())}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		e.SQLState = &pg.Code
	}
	return e
}

// whereabouts is the line that every run begins with.
func whereabouts(s postgres.Server) string {
	return fmt.Sprintf("database %s on %s:%d as %s, server %s, now %s", s.Database, s.Host, s.Port, s.Role, shortVersion(s.Version), report.Stamp(s.Now))
}

// shortVersion is the number in a server's version, without the packager's words.
func shortVersion(v string) string {
	v, _, _ = strings.Cut(v, " ")
	return v
}
