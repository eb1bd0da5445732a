package main

import (
	"context"
	"os"
	"sync"
	"syscall"
)

// interrupt turns signals into the ends of two contexts: the first signal ends soft, and what is under way may finish; a
// second one ends hard, and what is under way is cancelled.
type interrupt struct {
	soft, hard context.Context
	end        []context.CancelFunc

	mu       sync.Mutex
	first    os.Signal
	panicked any // of the goroutine that listens: a panic there must not end the process with the code of wrong usage
}

// newInterrupt listens to signals until close is called. said is called with the name of the first one.
func newInterrupt(ctx context.Context, signals <-chan os.Signal, said func(name string)) *interrupt {
	in := &interrupt{}
	var endHard, endSoft context.CancelFunc
	in.hard, endHard = context.WithCancel(ctx)
	in.soft, endSoft = context.WithCancel(in.hard)
	in.end = []context.CancelFunc{endSoft, endHard}
	go func() {
		defer func() {
			if v := recover(); v != nil {
				in.mu.Lock()
				in.panicked = v
				in.mu.Unlock()
				endHard()
			}
		}()
		for n := 0; ; n++ {
			select {
			case s := <-signals:
				if n > 0 {
					endHard()
					return
				}
				in.mu.Lock()
				in.first = s
				in.mu.Unlock()
				endSoft()
				said(signalName(s))
			case <-in.hard.Done():
				return
			}
		}
	}()
	return in
}

// fault is the panic of the listening goroutine, nil where there was none.
func (in *interrupt) fault() any {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.panicked
}

// close lets go of the signals.
func (in *interrupt) close() {
	for _, end := range in.end {
		end()
	}
}

// name is the first signal's, "" where none came.
func (in *interrupt) name() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.first == nil {
		return ""
	}
	return signalName(in.first)
}

// code is the exit code of the first signal, 0 where none came.
func (in *interrupt) code() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	if s, ok := in.first.(syscall.Signal); ok {
		return exitSignal + int(s)
	}
	return 0
}

func signalName(s os.Signal) string {
	switch s {
	case syscall.SIGHUP:
		return "SIGHUP"
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	}
	return s.String()
}
