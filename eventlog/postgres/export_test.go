package postgres

// Statements are the texts of a log, for tests of their plans.
func Statements(schema string) (add, list, latest string) {
	s := render(schema)
	return s.add, s.list, s.latest
}

// With is a log in which one statement has another text, for tests that take its clauses out.
func With(db DB, statement, text string) *Log {
	l := New(db, Options{})
	*map[string]*string{"add": &l.text.add, "list": &l.text.list, "latest": &l.text.latest}[statement] = text
	return l
}
