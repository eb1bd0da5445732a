// Package river holds no code to import. Its test sweeps the job table of a real
// River installation with river.yaml, through the command and through the
// library, and proves that what River still owes is left alone.
//
// It is a module of its own, so that nobody who imports prunectl depends on River.
package river
