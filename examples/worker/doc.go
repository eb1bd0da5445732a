// Command worker is a worker over the component domain_events: it makes the
// deliveries of a shop's events, and sweeps in its idle time.
//
//	worker setup         creates the tables
//	worker record N      records N events, each in the transaction of what happened
//	worker run           makes deliveries until SIGTERM or SIGINT, and sweeps when idle
//	worker show          counts what is there
//
// DATABASE_URL says where. As many workers as one likes may run at once, and each may
// be killed at any moment. README.md is the tour.
package main
