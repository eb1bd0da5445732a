package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// sink remembers the first error of writing to it: nobody looks at what Fprintf returns.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	s.err = err
	return n, err
}

// output is where words go: the result to stdout, everything else to stderr.
type output struct {
	stdout *sink

	mu     sync.Mutex // a signal speaks from a goroutine of its own
	stderr io.Writer
	log    *slog.Logger // with --log-format json: everything on stderr is one record a line
	live   *liveLine    // what is redrawn, and taken away before anything else is written
	hold   bool         // with --quiet: keep what is said until it is known whether anything is to be printed
	held   []func()
}

func newOutput(stdout, stderr io.Writer) *output {
	return &output{stdout: &sink{w: stdout}, stderr: stderr}
}

// say prints an error or a warning, with the program's name in front.
func (o *output) say(format string, args ...any) {
	o.put(slog.LevelError, "prunectl: ", fmt.Sprintf(format, args...))
}

// tell prints what is neither error nor result.
func (o *output) tell(format string, args ...any) {
	o.put(slog.LevelInfo, "", fmt.Sprintf(format, args...))
}

func (o *output) put(level slog.Level, prefix, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.later(func() {
		if o.log != nil {
			o.log.Log(context.Background(), level, text)
			return
		}
		fmt.Fprintf(o.stderr, "%s%s\n", prefix, text)
	})
}

// progress prints a record of the progress.
func (o *output) progress(msg string, attrs ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.later(func() {
		log := o.log
		if log == nil {
			log = slog.New(slog.NewTextHandler(o.stderr, utcSeconds))
		}
		log.Info(msg, attrs...)
	})
}

// later prints now, or when the held words are let go. The caller holds o.mu.
func (o *output) later(print func()) {
	if o.hold {
		o.held = append(o.held, print)
		return
	}
	o.live.clear()
	print()
}

// release prints what was held, and holds no more.
func (o *output) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hold = false
	for _, print := range o.held {
		print()
	}
	o.held = nil
}

// startLive begins the line that is redrawn, where stderr is a terminal and a person reads it.
func (o *output) startLive() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.log == nil && !o.hold {
		o.live = newLiveLine(o.stderr)
	}
}

func (o *output) isLive() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.live != nil
}

func (o *output) redraw(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.live.draw(text)
}

// endLive takes the line away.
func (o *output) endLive() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.live.clear()
	o.live = nil
}

// quiet holds back what is said from now on.
func (o *output) quiet(on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hold = on
}

// jsonLog makes each line on stderr a JSON record.
func (o *output) jsonLog() { o.log = slog.New(slog.NewJSONHandler(o.stderr, utcSeconds)) }

// utcSeconds writes a record's time in UTC and whole seconds.
var utcSeconds = &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey && len(groups) == 0 {
		a.Value = slog.StringValue(a.Value.Time().UTC().Format(time.RFC3339))
	}
	return a
}}
