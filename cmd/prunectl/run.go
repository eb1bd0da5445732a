package main

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime/debug"
)

// process is what the command knows of the process that it is.
type process struct {
	args           []string // without the program's name
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(name string) (value string, set bool)
	signals        <-chan os.Signal // nil: none comes
}

// app is one run of the command.
type app struct {
	globals
	stdin     io.Reader
	out       *output
	env       func(string) (string, bool)
	interrupt *interrupt
	acted     bool // a command began, so what it was given was right
}

// run runs one command to its end and returns the exit code. It never ends the process, and a panic is a failure: the
// runtime's own code for one is 2, which is ours for wrong usage.
func run(ctx context.Context, p process) (code int) {
	a := &app{globals: newGlobals(), stdin: p.stdin, out: newOutput(p.stdout, p.stderr), env: p.env}
	defer func() {
		if v := recover(); v != nil {
			a.out.release()
			a.out.say("internal error: %v; please report it with what follows\n%s", v, debug.Stack())
			code = exitFailed
		}
	}()
	a.interrupt = newInterrupt(ctx, p.signals, func(name string) {
		a.out.say("%s: ending after what is under way; a second signal cancels it", name)
	})
	defer a.interrupt.close()

	err := a.cli().RunContext(a.interrupt.soft, append([]string{"prunectl"}, p.args...))
	code = codeOf(err)
	if err != nil && !a.acted && code == exitFailed {
		code = exitUsage // the library refused it before a command began
	}
	// A command that has said all by its report returns nothing but its code.
	if err != nil && !errors.Is(err, errReported) {
		a.out.release()
		a.out.say("%s", printable(err.Error()))
		if s := a.interrupt.code(); s != 0 && errors.Is(err, context.Canceled) {
			code = s
		}
	}
	if v := a.interrupt.fault(); v != nil {
		panic(v)
	}
	if e := a.out.stdout.err; e != nil {
		a.out.release()
		a.out.say("the result could not be written: %v", e)
		if code < exitSignal {
			code = exitFailed
		}
	}
	return code
}

// errReported says that everything was said already; what is left is the exit code around it.
var errReported = errors.New("reported")

func reported(code int) error {
	if code == exitDone {
		return nil
	}
	return &codeError{code, errReported}
}
