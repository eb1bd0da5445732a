package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/connections"
	"github.com/prunectl/prunectl/connections/connectionstest"
	"github.com/prunectl/prunectl/connections/postgres"
)

// The contract holds in every exec mode of pgx, in any schema, whatever the session's time zone and form of bytes.
func TestConformance(t *testing.T) {
	db := installed.New(t)
	for i, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			pool := db.Pool(t, in(mode), func(c *pgxpool.Config) {
				c.ConnConfig.RuntimeParams["timezone"] = "Pacific/Apia"
				c.ConnConfig.RuntimeParams["bytea_output"] = []string{"hex", "escape"}[i%2]
			})
			schema := []string{"", odd}[i%2]
			table := pgx.Identifier{schema, "connections"}.Sanitize()
			if schema == "" {
				table = "connections"
			}
			connectionstest.Run(t, func(ctx context.Context) (connections.Store, error) {
				_, err := pool.Exec(ctx, "truncate "+table)
				return postgres.New(pool, postgres.Options{Schema: schema}), err
			})
		})
	}
}

// The store in another schema is another store.
func TestASchemaIsAStoreOfItsOwn(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	other := postgres.New(conn, postgres.Options{Schema: odd})
	create(t, conn, "t", "c")
	if _, err := other.Create(bounded(t), draft("t", "c")); err != nil {
		t.Error(err)
	}
	if n, err := other.Purge(bounded(t), "t"); n != 1 || err != nil {
		t.Error(n, err)
	}
	if _, err := store(conn).Get(bounded(t), "t", "c"); err != nil {
		t.Error(err)
	}
}

// All but a purge can be done in a transaction of the caller's, which an id that is taken does not end.
func TestItWorksInACallersTransaction(t *testing.T) {
	db := installed.New(t)
	create(t, db.Conn(t), "t", "taken")
	tx := begin(t, db)
	s := store(tx)
	create(t, tx, "t", "c")
	if _, err := s.Create(bounded(t), draft("t", "taken")); err == nil {
		t.Error("it was created twice")
	}
	if _, err := s.Revoke(bounded(t), "t", "taken"); err != nil {
		t.Error(err)
	}
	if l, err := s.List(bounded(t), "t", connections.Page{}); err != nil || len(l.Connections) != 1 || l.Connections[0].ID != "c" {
		t.Errorf("%+v, %v", l, err)
	}
	must(t, tx.Rollback(bounded(t)))
	if l, err := store(db.Conn(t)).List(bounded(t), "t", connections.Page{}); err != nil || len(l.Connections) != 1 || l.Connections[0].ID != "taken" {
		t.Errorf("%+v, %v", l, err)
	}
}

// Rows of one instant are listed in the order of the bytes of their ids, whatever the locale, and none is left out at the edge
// of a page.
func TestRowsOfOneInstantAreListedByTheirID(t *testing.T) {
	db := installed.New(t)
	db.Exec(t, `insert into connections (tenant_id, id, kind, name, created_at, updated_at)
select 't', id || n, 'k', 'n', at, at
  from unnest(array['b', 'B', 'a', 'A', 'á', 'a b', 'ab', 'a-b', '_']) id,
       unnest(array['2026-01-01 00:00:00.000001+00', '1600-01-01 00:00:00+00']::timestamptz[]) with ordinality o (at, n)`)
	want := db.Text(t, `select string_agg(id, ',' order by created_at, id collate "C") from connections`)
	conn := db.Conn(t)
	for limit := 1; limit < 20; limit++ {
		if limit == 10 {
			db.Exec(t, `drop index connections_listed`) // which has them in their order
		}
		got, page := "", connections.Page{Limit: limit}
		for {
			l, err := store(conn).List(bounded(t), "t", page)
			must(t, err)
			for _, c := range l.Connections {
				got += "," + c.ID
			}
			if page.After = l.Next; page.After == "" {
				break
			}
		}
		if got != ","+want {
			t.Errorf("in pages of %d: %s, want %s", limit, got, want)
		}
	}
}

// A revocation leaves the row with its time, and without its secret; its second one leaves both.
func TestARevocationRemovesTheSecret(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	create(t, conn, "t", "c")
	create(t, conn, "t", "other")
	var at time.Time
	for range 2 {
		var err error
		at, err = store(conn).Revoke(bounded(t), "t", "c")
		must(t, err)
	}
	if got := db.Text(t, `select concat_ws(' ', revoked_at = $1::text::timestamptz, secret is null, name) from connections where id = 'c'`, at.Format(time.RFC3339Nano)); got != "t t n" {
		t.Error(got)
	}
	if n := db.Int(t, `select count(*) from connections where secret = 'secret' and revoked_at is null`); n != 1 {
		t.Error("the secret of another is gone too")
	}
}

// Times are the database's, and go forward where its clock went back.
func TestTimesAreTheDatabasesAndGoForward(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	create(t, conn, "t", "c")
	if n := db.Int(t, `select count(*) from connections where created_at = updated_at and created_at between now() - interval '1 minute' and now()`); n != 1 {
		t.Error("it was not created now")
	}
	db.Exec(t, `update connections set created_at = now() + interval '1 hour', updated_at = now() + interval '2 hours'`)
	ahead := db.Text(t, `select updated_at at time zone 'UTC' from connections`)
	name := "m"
	updated, err := store(conn).Update(bounded(t), "t", "c", connections.Change{Name: &name})
	must(t, err)
	at, err := store(conn).Revoke(bounded(t), "t", "c")
	must(t, err)
	if got := at.Format("2006-01-02 15:04:05.999999"); got != ahead || !updated.Updated.Equal(at) {
		t.Errorf("updated %s and revoked %s, want %s", updated.Updated, got, ahead)
	}
}

// What only the database knows to be unusable is refused as what we know: a number too large for it, half of a pair.
func TestSettingsThatTheDatabaseRefuses(t *testing.T) {
	db := installed.New(t)
	for _, mode := range modes {
		pool := db.Pool(t, in(mode))
		for _, bad := range []string{`{"n": 1e200000}`, `{"s": "\ud800"}`} {
			d := draft("t", mode.String())
			d.Settings = []byte(bad)
			if _, err := store(pool).Create(bounded(t), d); !isInput(err) {
				t.Errorf("%s: %s: %v", mode, bad, err)
			}
		}
	}
	if n := db.Int(t, `select count(*) from connections`); n != 0 {
		t.Errorf("%d rows", n)
	}
}
