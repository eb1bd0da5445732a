package preflight

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/migrations"
)

var update = flag.Bool("update", false, "write the contracts anew, from what the migrations make")

// generation is the schema that contracts are read in: a name that the server prints
// without quotes, that the migrations quote, and that stands nowhere else.
const generation = "prunectl_contract"

// The contracts are what the migrations make, of each version, on this server.
func TestTheContractsAreWhatTheMigrationsMake(t *testing.T) {
	for _, component := range migrations.Components() {
		t.Run(component, func(t *testing.T) {
			db := pgtest.New(t)
			db.Exec(t, "create schema "+generation)
			ctx := bounded(t)
			conn := db.Conn(t)
			if err := migrate(ctx, db.DSN, component, generation); err != nil {
				t.Fatal(err)
			}
			versions := migrations.Versions(component)
			for _, v := range slices.Backward(versions) {
				if n := db.Int(t, unread, generation); n != 0 {
					t.Errorf("version %s makes %d things that no contract holds: views, types, or sequences of no identity column", v, n)
				}
				hold(t, component, v, generate(t, conn, component, v))
				if err := with(db.DSN, component, generation, func(m *migrations.Migrator) error { _, err := m.Down(ctx); return err }); err != nil {
					t.Fatal(err)
				}
			}
			files, err := filepath.Glob(filepath.Join("contracts", component, "*"))
			if err != nil || len(files) != len(versions) {
				t.Errorf("contracts %q for %d versions (%v)", files, len(versions), err)
			}
		})
	}
	folders, err := filepath.Glob(filepath.Join("contracts", "*"))
	if err != nil || len(folders) != len(migrations.Components()) {
		t.Errorf("contracts %q for components %q (%v)", folders, migrations.Components(), err)
	}
}

const unread = `
select (select count(*) from pg_class c where c.relnamespace = $1::text::regnamespace and c.relkind not in ('r', 'i')
          and not (c.relkind = 'S' and exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'i')))
     + (select count(*) from pg_type t left join pg_class c on c.oid = t.typrelid
         where t.typnamespace = $1::text::regnamespace and t.typtype <> 'b' and coalesce(c.relkind, 'c') = 'c')`

// hold compares the file of a version with what was generated, byte for byte.
func hold(t *testing.T, component string, v migrations.Version, got []byte) {
	t.Helper()
	file := filepath.Join("contracts", component, fmt.Sprintf("%d.json", v.Number))
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run with -update", err)
	}
	if bytes.Equal(want, got) {
		return
	}
	expected, found := firstDifference(string(want), string(got))
	t.Errorf("%s has %s, and the migrations make %s; look at the difference, then run with -update", file, expected, found)
}

// generate is the contract of what is in the schema of generation.
func generate(t *testing.T, conn *pgx.Conn, component string, v migrations.Version) []byte {
	t.Helper()
	ctx := bounded(t)
	tx, err := begin(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx) // it wrote nothing
	a := ask(tx)
	if err := a.each(ctx, settings, func(pgx.CollectableRow) error { return nil }); err != nil {
		t.Fatal(err)
	}
	c, err := a.read(ctx, generation,
		texts(ctx, t, a, `select relname::text from pg_class where relnamespace = $1::text::regnamespace and relkind not in ('i', 'S')`),
		texts(ctx, t, a, `select proname || '(' || pg_get_function_identity_arguments(oid) || ')' from pg_proc where pronamespace = $1::text::regnamespace`))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range c.Tables {
		if table.Kind != "ordinary table" || table.Inheritance != "none" {
			t.Errorf("version %s makes %s as %s, inheritance %s, which no contract holds", v, table.Name, table.Kind, table.Inheritance)
		}
	}
	c.Version, c.Schema = Version{Number: v.Number, Name: v.Name}, migrations.DefaultSchema(component)
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(c); err != nil {
		t.Fatal(err)
	}
	out := bytes.ReplaceAll(text.Bytes(), []byte(`\"`+generation+`\"`), []byte(schemaQuoted))
	return bytes.ReplaceAll(out, []byte(generation), []byte(schemaPlain))
}

func texts(ctx context.Context, t *testing.T, a asker, sql string) []string {
	t.Helper()
	all := []string{}
	err := a.each(ctx, sql, func(row pgx.CollectableRow) error {
		var s string
		err := row.Scan(&s)
		all = append(all, s)
		return err
	}, generation)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
