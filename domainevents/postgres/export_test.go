package postgres

// Statements are the texts of a store by name, for tests of their plans.
func Statements(schema string) map[string]string {
	s := render(schema)
	return map[string]string{
		"record": s.record, "first": s.first, "claim": s.claim, "acknowledge": s.acknowledge,
		"in order": s.inOrder, "lock an event": s.lockEvent, "lock dead": s.lockDead, "lock dead of a receiver": s.lockDeadOf, "reopen dead": s.reopenDead, "reopen all": s.reopenAll,
		"counts": s.counts, "words": s.words, "quiet": s.quiet,
	}
}
