package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/prunectl/prunectl/connections"
	"github.com/prunectl/prunectl/connections/postgres"
	"github.com/prunectl/prunectl/internal/pgtest"
	engine "github.com/prunectl/prunectl/pruner/postgres"
)

// many is more than two batches.
const many = 2*postgres.PurgeLimit + 7

// fill gives two tenants many connections each, every third of them revoked.
func fill(t *testing.T, db *pgtest.DB) {
	t.Helper()
	db.Exec(t, fmt.Sprintf(`insert into connections (tenant_id, id, kind, name, revoked_at)
select t, 'c' || g, 'k', 'n', case when g %% 3 = 0 then now() end from unnest(array['acme', 'Acme']) t, generate_series(1, %d) g`, many))
}

// blocked is a trigger that waits for the advisory lock 1 before the row of this id goes.
func blocked(t *testing.T, db *pgtest.DB, id string) {
	t.Helper()
	db.Exec(t, `create function wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1); return old; end $$;
create trigger wait before delete on connections for each row when (old.id = '`+id+`') execute function wait()`)
}

const lockIt, letGo = `select pg_advisory_lock(1)`, `select pg_advisory_unlock(1)`

func run(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	_, err := conn.Exec(bounded(t), sql)
	must(t, err)
}

func count(t *testing.T, db *pgtest.DB, tenant string) int {
	t.Helper()
	return int(db.Int(t, `select count(*) from connections where tenant_id = $1`, tenant))
}

func TestAPurgeOfManyIsInBatches(t *testing.T) {
	db := installed.New(t)
	fill(t, db)
	db.Exec(t, `create table batches (rows int); create function tell() returns trigger language plpgsql as $$
begin insert into batches select count(*) from gone; return null; end $$;
create trigger tell after delete on connections referencing old table as gone for each statement execute function tell()`)
	before := db.Text(t, `select md5(string_agg(c::text, ',' order by id)) from connections c where tenant_id = 'Acme'`)
	if n, err := store(db.Conn(t)).Purge(bounded(t), "acme"); n != many || err != nil {
		t.Errorf("%d, %v; want %d", n, err, many)
	}
	if got := db.Text(t, `select concat_ws(' ', max(rows) <= $1, sum(rows), count(*) >= 3) from batches`, int64(postgres.PurgeLimit)); got != fmt.Sprintf("t %d t", many) {
		t.Errorf("batches (none too large, of so many rows, more than two): %s", got)
	}
	if after := db.Text(t, `select md5(string_agg(c::text, ',' order by id)) from connections c where tenant_id = 'Acme'`); after != before || count(t, db, "acme") != 0 {
		t.Error("another's rows are not what they were, or something is left")
	}
}

// Killed in its second batch it has removed the first, says so, and another one ends it.
func TestAPurgeThatIsKilledIsEndedByTheNext(t *testing.T) {
	db := installed.New(t)
	fill(t, db)
	last := db.Text(t, fmt.Sprintf(`select id from connections where tenant_id = 'acme' order by id offset %d limit 1`, postgres.PurgeLimit+10))
	blocked(t, db, last)
	holder, conn := db.Conn(t), db.Conn(t)
	run(t, holder, lockIt)
	var n int
	done := db.Beside(t, conn, func() (err error) {
		n, err = store(conn).Purge(bounded(t), "acme")
		return err
	})
	db.Exec(t, `select pg_terminate_backend($1)`, int64(conn.PgConn().PID()))
	if err := <-done; err == nil || n < postgres.PurgeLimit || n == many {
		t.Errorf("killed: %d, %v", n, err)
	}
	if left := count(t, db, "acme"); left != many-n {
		t.Errorf("%d are left after %d were said to be removed", left, n)
	}
	run(t, holder, letGo)
	if next, err := store(db.Conn(t)).Purge(bounded(t), "acme"); next != many-n || err != nil {
		t.Errorf("the next one: %d, %v", next, err)
	}
	if count(t, db, "acme") != 0 || count(t, db, "Acme") != many {
		t.Error("something is left, or gone that was another's")
	}
}

// A connection that somebody creates while a purge is at work, behind the place where it is, is removed in a second pass.
func TestWhatComesMeanwhileIsRemovedToo(t *testing.T) {
	db := installed.New(t)
	create(t, db.Conn(t), "acme", "b")
	create(t, db.Conn(t), "acme", "c")
	blocked(t, db, "c")
	holder, conn := db.Conn(t), db.Conn(t)
	run(t, holder, lockIt)
	var n int
	done := db.Beside(t, conn, func() (err error) {
		n, err = store(conn).Purge(bounded(t), "acme")
		return err
	})
	create(t, db.Conn(t), "acme", "a")
	run(t, holder, letGo)
	if err := <-done; err != nil || n != 3 || count(t, db, "acme") != 0 {
		t.Errorf("removed %d, %v", n, err)
	}
}

// What somebody holds, what a trigger keeps, and what comes again and again is left, and said to be.
func TestWhatIsLeftIsSaid(t *testing.T) {
	left := func(t *testing.T, db *pgtest.DB, removed, want int) {
		t.Helper()
		n, err := store(db.Conn(t)).Purge(bounded(t), "acme")
		var e *connections.LeftError
		if !errors.As(err, &e) || e.Rows != want || e.More || n != removed || !strings.Contains(err.Error(), fmt.Sprintf("%d connections of the tenant are left", want)) {
			t.Errorf("removed %d, %v; want %d removed, and %d left", n, err, removed, want)
		}
		if got := count(t, db, "acme"); got != want || count(t, db, "Acme") != 1 {
			t.Errorf("%d are left, want %d; %d of another", got, want, count(t, db, "Acme"))
		}
	}
	some := func(t *testing.T) *pgtest.DB {
		t.Helper()
		db := installed.New(t)
		conn := db.Conn(t)
		for _, id := range []string{"a", "b", "c"} {
			create(t, conn, "acme", id)
		}
		create(t, conn, "Acme", "a")
		return db
	}
	t.Run("held", func(t *testing.T) {
		db := some(t)
		tx := begin(t, db)
		_, err := tx.Exec(bounded(t), `select from connections where tenant_id = 'acme' and id = 'b' for update`)
		must(t, err)
		left(t, db, 2, 1)
		must(t, tx.Rollback(bounded(t)))
		if n, err := store(db.Conn(t)).Purge(bounded(t), "acme"); n != 1 || err != nil {
			t.Error(n, err)
		}
	})
	t.Run("kept", func(t *testing.T) {
		db := some(t)
		db.Exec(t, `create function keep() returns trigger language plpgsql as $$ begin return null; end $$;
create trigger keep before delete on connections for each row when (old.id <> 'b') execute function keep()`)
		left(t, db, 1, 2)
	})
	t.Run("come again", func(t *testing.T) {
		db := some(t)
		db.Exec(t, `create function again() returns trigger language plpgsql as $$
begin insert into connections (tenant_id, id, kind, name) values ('acme', 'a', 'k', 'n') on conflict do nothing; return null; end $$;
create trigger again after delete on connections for each statement execute function again()`)
		left(t, db, 4, 1)
	})
	t.Run("referred to", func(t *testing.T) {
		db := some(t)
		db.Exec(t, `create table used (tenant text, id text, constraint used_by foreign key (tenant, id) references connections); insert into used values ('acme', 'b')`)
		n, err := store(db.Conn(t)).Purge(bounded(t), "acme")
		var refused *engine.RefusedError
		if n != 0 || !errors.As(err, &refused) || !strings.Contains(err.Error(), "used_by of public.used refers to public.connections") || count(t, db, "acme") != 3 {
			t.Errorf("removed %d, %v", n, err)
		}
	})
}

// A purge of connections is of no other table, whatever columns that one has.
func TestAPurgeIsOfConnectionsAlone(t *testing.T) {
	db := installed.New(t)
	db.Exec(t, `create table others (tenant_id text, id text); insert into others values ('acme', 'c')`)
	for _, tenant := range []string{"acme", "%", "all"} {
		create(t, db.Conn(t), tenant, "c")
		if n, err := store(db.Conn(t)).Purge(bounded(t), tenant); n != 1 || err != nil {
			t.Errorf("%s: %d, %v", tenant, n, err)
		}
	}
	if n := db.Int(t, `select count(*) from others`); n != 1 {
		t.Errorf("%d others are left", n)
	}
}

// Another purge of the same tenant is at work, and stays so: it is told what is left.
func TestOfTwoPurgesOneIsToldWhatIsLeft(t *testing.T) {
	db := installed.New(t)
	create(t, db.Conn(t), "acme", "c")
	blocked(t, db, "c")
	holder, conn := db.Conn(t), db.Conn(t)
	run(t, holder, lockIt)
	done := db.Beside(t, conn, func() error { _, err := store(conn).Purge(bounded(t), "acme"); return err })
	n, err := store(db.Conn(t)).Purge(bounded(t), "acme")
	var left *connections.LeftError
	if n != 0 || !errors.As(err, &left) || left.Rows != 1 {
		t.Errorf("the second: %d, %v", n, err)
	}
	run(t, holder, letGo)
	if err := <-done; err != nil && !errors.As(err, &left) { // its patience may have ended before
		t.Errorf("the first: %v", err)
	}
}

// Its commits wait for the disk, whatever the default is, and where more is asked for, for that; a policy hides no row from it.
func TestAPurgeIsDurable(t *testing.T) {
	for set, want := range map[string]string{"off": "on off", "local": "on off", "remote_write": "on off", "on": "on off", "remote_apply": "remote_apply off"} {
		db := installed.New(t)
		db.Exec(t, `create table told (settings text); create function tell() returns trigger language plpgsql as $$
begin insert into told values (current_setting('synchronous_commit') || ' ' || current_setting('row_security')); return old; end $$;
create trigger tell before delete on connections for each row execute function tell()`)
		conn := db.Conn(t, func(c *pgx.ConnConfig) { c.RuntimeParams["synchronous_commit"] = set })
		create(t, conn, "t", "c")
		if n, err := store(conn).Purge(bounded(t), "t"); n != 1 || err != nil {
			t.Error(n, err)
		}
		if got := db.Text(t, `select settings from told`); got != want {
			t.Errorf("%s: %s, want %s", set, got, want)
		}
		var after string
		must(t, conn.QueryRow(bounded(t), `show synchronous_commit`).Scan(&after))
		if after != set {
			t.Errorf("the session was left with %s, it had %s", after, set)
		}
	}
}

// A purge commits: it is refused where that would commit what is the caller's, or not commit at all.
func TestAPurgeIsNotInACallersTransaction(t *testing.T) {
	db := installed.New(t)
	pool, conn := db.Pool(t), db.Conn(t)
	create(t, conn, "t", "c")
	lent, err := pool.Acquire(bounded(t))
	must(t, err)
	tx := begin(t, db)
	pooled, err := pool.Begin(bounded(t))
	must(t, err)
	for _, c := range []*pgx.Conn{conn, lent.Conn()} {
		run(t, c, `begin`)
	}
	for name, in := range map[string]postgres.DB{"a transaction": tx, "a pool's transaction": pooled, "a connection": conn, "a connection of a pool": lent} {
		if n, err := store(in).Purge(bounded(t), "t"); n != 0 || !errors.Is(err, postgres.ErrInTransaction) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	must(t, tx.Rollback(bounded(t)))
	must(t, pooled.Rollback(bounded(t)))
	for _, c := range []*pgx.Conn{conn, lent.Conn()} {
		run(t, c, `rollback`)
	}
	if n := count(t, db, "t"); n != 1 {
		t.Errorf("%d are left", n)
	}
	if n, err := store(lent).Purge(bounded(t), "t"); n != 1 || err != nil {
		t.Errorf("idle: %d, %v", n, err)
	}
	lent.Release()
}

// Defaults of the database that are not meant for a purge are none of its own.
func TestAPurgeUnderOtherDefaults(t *testing.T) {
	db := installed.New(t)
	for _, mode := range modes {
		pool := db.Pool(t, in(mode), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable" })
		create(t, pool, "t", "c")
		if n, err := store(pool).Purge(bounded(t), "t"); n != 1 || err != nil {
			t.Errorf("%s: %d, %v", mode, n, err)
		}
	}
	create(t, db.Conn(t), "t", "c")
	conn := db.Conn(t, func(c *pgx.ConnConfig) { c.RuntimeParams["default_transaction_read_only"] = "on" })
	if n, err := store(conn).Purge(bounded(t), "t"); n != 0 || err == nil || !strings.Contains(err.Error(), "the transaction is read-only") {
		t.Errorf("read-only: %d, %v", n, err)
	}
}
