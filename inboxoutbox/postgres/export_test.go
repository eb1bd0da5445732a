package postgres

// byName are the texts by name.
func (s *statements) byName() map[string]*string {
	return map[string]*string{
		"receive": &s.receive, "received": &s.received, "complete": &s.complete, "release": &s.release,
		"add": &s.add, "added": &s.added, "claim": &s.claim, "deliver": &s.deliver, "retry": &s.retry,
		"acquire": &s.acquire, "held": &s.held, "renew": &s.renew, "give back": &s.giveBack,
		"health": &s.health,
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
