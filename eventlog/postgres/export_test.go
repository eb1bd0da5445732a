package postgres

// Statements are the texts of a log, for tests of their plans.
func Statements(schema string) (add, list, latest string) {
	s := render(schema)
	return s.add, s.list, s.latest
}
