package report

// PurgeCheck is what the catalog says of a purge of the policy file, for a check: all but what hangs on a tenant's name.
type PurgeCheck struct {
	Name   string  `json:"name"`
	Stop   Stop    `json:"stop"` // Checked, Refused, Failed or NotReached
	Checks []Check `json:"checks"`
	Error  *Error  `json:"error"`
}

// NewPurgeCheck is an entry of a purge of which nothing is said yet.
func NewPurgeCheck(name string) PurgeCheck {
	return PurgeCheck{Name: name, Stop: Checked, Checks: []Check{}}
}
