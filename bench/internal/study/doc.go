// Package study is what the bench asks: which subjects on which populations, what is compared with what, and the bounds that
// must hold.
//
// Bounds on costs hold on any machine and are asserted by tests. Bounds on times are ratios within one run: they are reported.
package study
