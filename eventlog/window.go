package eventlog

import "time"

// DefaultWindow is how long the ready sweep of this log keeps an event of a run
// in a terminal state, unless the policy says otherwise: 90 days. It is a
// default and not a constant of nature: choose the window your own audits,
// replays and debugging need, and write it in the policy.
const DefaultWindow = 90 * 24 * time.Hour
