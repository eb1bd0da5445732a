package postgres

// Statements are the texts of a store by name, for tests of their plans.
func Statements(schema string) map[string]string {
	s := render(schema)
	return map[string]string{
		"create": s.create, "get": s.get, "list": s.list, "update": s.update, "revoke": s.revoke,
		"settings": s.settings, "has": s.has,
	}
}

// PurgeLimit is how many rows one transaction of a purge removes.
const PurgeLimit = purgeLimit
