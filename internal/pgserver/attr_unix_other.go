//go:build unix && !linux

package pgserver

import "syscall"

// setDeathSignal has no counterpart here: the watcher alone ends a server
// whose owner is gone.
func setDeathSignal(*syscall.SysProcAttr) {}
