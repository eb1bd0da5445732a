package postgres

import "testing"

// TestVersions holds which releases are refused, and which are warned of for whom.
func TestVersions(t *testing.T) {
	for _, c := range []struct {
		major, minor int
		byOthers     bool
		want         Verdict
	}{
		{13, 22, false, Refused}, {14, 0, false, OK}, {14, 19, true, Warning}, {14, 20, true, OK}, {15, 14, true, Warning}, {15, 14, false, OK},
		{15, 15, true, OK}, {18, 0, true, OK}, {19, 0, true, OK},
	} {
		var f findings
		f.checkVersion(c.major, c.minor, c.byOthers)
		if len(f.checks) != 1 || f.checks[0].Result != c.want {
			t.Errorf("%d.%d, by others %t: %+v; want %s", c.major, c.minor, c.byOthers, f.checks, c.want)
		}
	}
}
