package postgres

// byName are the texts by name.
func (s *statements) byName() map[string]*string {
	return map[string]*string{
		"create": &s.create, "get": &s.get, "list": &s.list, "update": &s.update, "revoke": &s.revoke,
		"settings": &s.settings, "has": &s.has,
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

// With is a store over the schema public in which one statement has another text, for tests that take its clauses out.
func With(db DB, statement, text string) *Store {
	s := New(db, Options{})
	*s.text.byName()[statement] = text
	return s
}

// PurgeLimit is how many rows one transaction of a purge removes.
const PurgeLimit = purgeLimit
