package postgres

// Statements are the texts of a store by name, for tests of their plans.
func Statements(schema string) map[string]string {
	s := render(schema)
	return map[string]string{
		"receive": s.receive, "received": s.received, "complete": s.complete, "release": s.release,
		"add": s.add, "added": s.added, "claim": s.claim, "deliver": s.deliver, "retry": s.retry,
		"acquire": s.acquire, "held": s.held, "renew": s.renew, "give back": s.giveBack,
		"health": s.health,
	}
}
