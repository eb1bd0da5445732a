// Package proctest runs built programs in tests as people run them: as
// processes, with real signals and exit codes. Whatever is started ends with
// its test, each wait has an end, and what a program prints can be read while
// it runs.
//
// It adds to os/exec and does not hide it: a test makes its [exec.Cmd] itself,
// with the arguments, the environment and the folder that it is about.
package proctest
