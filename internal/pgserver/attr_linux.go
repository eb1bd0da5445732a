package pgserver

import "syscall"

// setDeathSignal has the kernel end the program when this process ends.
func setDeathSignal(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
