package retention

// Statements are the texts of the package by name, for tests of their plans.
func Statements(schema string) map[string]string {
	s := render(schema)
	return map[string]string{
		"recorded": s.recorded, "record": s.record, "lock": s.lock, "replace": s.replace,
		"due inbox": s.dueInbox, "due outbox": s.dueOutbox, "left": s.left,
	}
}

// CountBound bounds what is counted.
const CountBound = countBound
