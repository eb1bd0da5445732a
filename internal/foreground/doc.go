// Package foreground holds, on a real server, what those who use the swept tables notice of a drain beside them: that
// nothing fails, and how long they wait for it. It has no code of its own; its test is a short form of what the bench
// measures, over the swept tables themselves and not beside them.
package foreground
