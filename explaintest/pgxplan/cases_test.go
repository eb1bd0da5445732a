package pgxplan_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/explaintest"
	"github.com/prunectl/prunectl/explaintest/internal/plancases"
	"github.com/prunectl/prunectl/explaintest/pgxplan"
	"github.com/prunectl/prunectl/internal/pgtest"
)

var update = flag.Bool("update", false, "write the plans of this server into explaintest's testdata")

func TestMain(m *testing.M) { pgtest.Main(m) }

var casesDB = pgtest.NewTemplate("plans", func(ctx context.Context, dsn string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	for _, sql := range []string{plancases.Schema, "VACUUM ANALYZE"} {
		if err := c.PgConn().Exec(ctx, sql).Close(); err != nil {
			return err
		}
	}
	return nil
})

// TestCases holds the rules to the plans of a real server, custom and generic.
func TestCases(t *testing.T) {
	db := casesDB.New(t)
	conn := db.Conn(t)
	compiles := db.Text(t, "SELECT pg_jit_available()") == "t"
	for _, c := range plancases.All() {
		if c.JIT && !compiles {
			t.Logf("%s: this server does not compile", c.Name)
			continue
		}
		for _, generic := range []bool{false, true} {
			st := pgxplan.Statement{SQL: c.SQL, Args: c.Args, Settings: c.Settings, Analyze: c.Analyze, Generic: generic}
			p, err := pgxplan.Explain(t.Context(), conn, st)
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			if generic && c.GenericDiffers {
				continue
			}
			for _, problem := range c.Problems(p) {
				t.Errorf("generic %t: %s", generic, problem)
			}
			known(t, p.Catalog)
		}
		if *update {
			write(t, db, c)
		}
	}
}

// known holds what is read of the catalog against what plancases say of it.
func known(t *testing.T, c explaintest.Catalog) {
	t.Helper()
	want := plancases.Catalog()
	for _, x := range c.Indexes {
		if !slices.ContainsFunc(want.Indexes, func(w explaintest.Index) bool { return fmt.Sprint(w) == fmt.Sprint(x) }) {
			t.Errorf("the index %+v is read from the catalog; want one of %+v", x, want.Indexes)
		}
	}
	for _, x := range c.Tables {
		if !slices.ContainsFunc(want.Tables, func(w explaintest.Table) bool {
			return w.Name == x.Name && slices.Equal(w.Parents, x.Parents)
		}) || !x.Analyzed || x.Rows == 0 || (x.Pages == 0) != (x.Name.Name == "deliveries") {
			t.Errorf("the table %+v is read from the catalog; want one of %+v", x, want.Tables)
		}
	}
}

// write keeps the text of EXPLAIN for the tests of the parser.
func write(t *testing.T, db *pgtest.DB, c plancases.Case) {
	t.Helper()
	major := strings.TrimSuffix(db.Text(t, "SELECT current_setting('server_version_num')"), "0000")
	major = major[:2]
	text, err := pgxplan.Text(t.Context(), db.Conn(t), pgxplan.Statement{SQL: c.SQL, Args: c.Args, Settings: c.Settings, Analyze: c.Analyze})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "testdata", "plans", major)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, c.Name+".json"), append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
