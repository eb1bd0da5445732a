package rights

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/pruner/postgres"
)

// TestDemoMakesADatabase: with --dsn the demo needs one attribute of its role, and to connect; without the attribute it says
// so.
func TestDemoMakesADatabase(t *testing.T) {
	bin := built(t)
	t.Parallel()
	db := pgtest.New(t)
	db.Exec(t, "REVOKE ALL ON DATABASE "+db.Name+" FROM PUBLIC")
	for _, c := range []struct {
		role, attributes string
		code             int
		says             string
	}{
		{"rights_nobody", "login", 1, "permission denied to create database"},
		{"rights_demo", "login createdb", 0, ""},
	} {
		pgtest.Role(t, c.role, c.attributes)
		db.Exec(t, "GRANT CONNECT ON DATABASE "+db.Name+" TO "+c.role)
		if code, out := (entry{}).run(t, "demo --rows 1000 --dsn "+db.DSNAs(c.role), db.DSNAs(c.role), bin); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%s, %s: exit code %d\n%s", c.role, c.attributes, code, out)
		}
	}
}

// TestSessionsOfOthers: what holds vacuum back is found among the sessions of other roles by a member of pg_read_all_stats
// alone.
func TestSessionsOfOthers(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	holder := db.Conn(t)
	if _, err := holder.Exec(t.Context(), "BEGIN; CREATE TABLE things ()"); err != nil { // which takes a transaction ID
		t.Fatal(err)
	}
	for role, attributes := range map[string]string{"rights_alone": "login", "rights_reader": "login in role pg_read_all_stats"} {
		pgtest.Role(t, role, attributes)
		pool := db.Pool(t, func(c *pgxpool.Config) { c.ConnConfig.User = role })
		h, err := postgres.VacuumHeldBack(t.Context(), postgres.Pool(pool), 0)
		if err != nil || (h != nil) != (role == "rights_reader") {
			t.Errorf("%s: %+v, %v", role, h, err)
		}
	}
}
