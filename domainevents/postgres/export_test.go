package postgres

// byName are the texts by name.
func (s *statements) byName() map[string]*string {
	return map[string]*string{
		"record": &s.record, "first": &s.first, "claim": &s.claim, "acknowledge": &s.acknowledge,
		"in order": &s.inOrder, "lock an event": &s.lockEvent, "lock dead": &s.lockDead, "lock dead of a receiver": &s.lockDeadOf, "reopen dead": &s.reopenDead, "reopen all": &s.reopenAll,
		"counts": &s.counts, "words": &s.words, "quiet": &s.quiet,
	}
}

// Statements are the texts of a store by name, for tests of their plans.
func Statements(schema string) map[string]string {
	s := render(schema)
	all := map[string]string{}
	for name, text := range s.byName() {
		all[name] = *text
	}
	return all
}

// With is a store in which one statement has another text, for tests that take its clauses out.
func With(schema, statement, text string) *Store {
	s := New(Options{Schema: schema})
	*s.text.byName()[statement] = text
	return s
}
