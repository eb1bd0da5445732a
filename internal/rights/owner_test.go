package rights

import (
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/migrations"
)

// TestOnlyTheOwnerTakesBack: what a role has installed it takes back without a right on the tables, and the schema that it
// has made needs none either; what another one has installed it does not, whatever was granted to it.
func TestOnlyTheOwnerTakesBack(t *testing.T) {
	d, bin := read(t), built(t)
	pgtest.Role(t, role, "login")
	t.Parallel()
	for _, component := range migrations.Components() {
		t.Run(component, func(t *testing.T) {
			t.Parallel()
			schema := migrations.DefaultSchema(component)
			row := "migrate up"
			if schema != "public" {
				row = "migrate up of " + component
			}
			none := entry{state: nothing}
			up, down := "migrate up --component "+component, "migrate down --component "+component

			db := none.make(t, d.of(t, row), bin)
			if code, out := none.run(t, up, db.DSNAs(role), bin); code != 0 {
				t.Fatalf("up: exit code %d\n%s", code, out)
			}
			for _, r := range d.of(t, row) {
				if r.privilege == "CREATE" && r.kind == "DATABASE" {
					db.ask(t, r.sql(db.DB, "REVOKE", "FROM"))
				}
			}
			for range migrations.Versions(component) {
				if code, out := none.run(t, down, db.DSNAs(role), bin); code != 0 || !strings.Contains(out, "taken back") {
					t.Errorf("down: exit code %d\n%s", code, out)
				}
			}

			db = none.make(t, d.of(t, row), bin)
			if code, out := none.run(t, up, db.DSN, bin); code != 0 {
				t.Fatalf("up as a superuser: exit code %d\n%s", code, out)
			}
			db.ask(t, "GRANT ALL ON SCHEMA "+schema+" TO "+role+"; GRANT ALL ON ALL TABLES IN SCHEMA "+schema+" TO "+role)
			code, out := none.run(t, down, db.DSNAs(role), bin)
			if code != 1 || !strings.Contains(out, "must be owner of") {
				t.Errorf("down of another's: exit code %d\n%s", code, out)
			}
		})
	}
}
