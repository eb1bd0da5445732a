package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3/lock"
)

// session is one turn of a migrator under its lock. The migration library calls
// it on the connection that then does the work, so what it sees can not change
// before the work is done, and lock and work end together when the connection
// does.
type session struct {
	*Migrator
	locker  lock.SessionLocker
	prepare func(context.Context, *sql.Conn) error
	refused error // why the turn did not begin, before the library wrapped it
}

var _ lock.SessionLocker = (*session)(nil)

// newSession returns a turn whose preparation is prepare. The locker inside is the
// library's: it tries, and tries again a second later. It counts its tries, so it
// serves one turn.
func (m *Migrator) newSession(prepare func(context.Context, *sql.Conn) error) (*session, error) {
	tries := uint64(m.lockWait/time.Second) + 1
	l, err := lock.NewPostgresSessionLocker(
		lock.WithLockID(m.lockKey()),
		lock.WithLockTimeout(1, tries),
		lock.WithUnlockTimeout(1, 1), // it is ours or the session is gone: a second try changes nothing
	)
	return &session{Migrator: m, locker: l, prepare: prepare}, err
}

// SessionLock implements [lock.SessionLocker].
func (s *session) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if err := s.locker.SessionLock(ctx, conn); err != nil {
		s.refused = s.whyNot(ctx, conn, err)
		return s.refused
	}
	if s.refused = s.prepare(ctx, conn); s.refused != nil {
		// Without its lock released here the connection would keep it: the library
		// releases only after a turn that began. A connection that is lost keeps nothing.
		_ = s.SessionUnlock(context.WithoutCancel(ctx), conn)
	}
	return s.refused
}

// SessionUnlock implements [lock.SessionLocker].
func (s *session) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	if err := s.locker.SessionUnlock(ctx, conn); err != nil {
		return fmt.Errorf("release the lock of component %s in schema %s: %w; where the session was not lost, a pooler in transaction mode is in between: connect to the server itself",
			s.component.name, s.schema, err)
	}
	return nil
}

// whyNot tells a lock that somebody else holds from other reasons, by asking who
// holds it.
func (s *session) whyNot(ctx context.Context, conn *sql.Conn, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var pid int
	asked := conn.QueryRowContext(ctx, `
SELECT l.pid FROM pg_catalog.pg_locks l
 WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
   AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
   AND (l.classid::bigint << 32) | l.objid::bigint = $1`, s.lockKey()).Scan(&pid)
	if asked != nil {
		return fmt.Errorf("take the lock of component %s in schema %s: %w", s.component.name, s.schema, err)
	}
	return fmt.Errorf("%w on component %s in schema %s, held by pid %d for all of %s; wait for it and run this again",
		ErrBusy, s.component.name, s.schema, pid, s.lockWait)
}

// lockKey is the advisory lock of this component in this schema.
func (m *Migrator) lockKey() int64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "prunectl migrations %s in %s", m.component.name, pgx.Identifier{m.schema}.Sanitize())
	return int64(h.Sum64())
}

// beforeUp makes the schema ready for version v: it refuses what is newer than
// this program, drops an index of v that a build left behind, and forgets that v
// was applied where its index is not there. rebuilt is set where it had to mend.
func (m *Migrator) beforeUp(ctx context.Context, conn *sql.Conn, v version, rebuilt *bool) error {
	records, err := m.ledger.records(ctx, conn)
	if err != nil {
		return err
	}
	if err := m.refuseNewer(records); err != nil {
		return err
	}
	_, _, inTransaction, err := m.component.sections(v, m.schema)
	if err != nil {
		return err
	}
	if inTransaction && !recorded(records, v) {
		return nil // it makes its indexes with their tables: what is there of their names is not ours
	}
	for _, x := range v.indexes {
		f, err := lookUp(ctx, conn, m.schema, x)
		if err != nil {
			return err
		}
		switch {
		case f.exists && !f.declared(x):
			return m.indexDiffers(v, x, f)
		case f.exists && f.valid:
			continue
		case f.exists && f.builder != 0:
			return fmt.Errorf("index %s is being built by pid %d; run this again when it has ended", x.Name, f.builder)
		case f.exists:
			*rebuilt = true
			name := pgx.Identifier{m.schema, x.Name}.Sanitize()
			if _, err := conn.ExecContext(ctx, `DROP INDEX CONCURRENTLY IF EXISTS `+name); err != nil {
				return fmt.Errorf("drop %s, left by a build that did not end: %w", name, err)
			}
		}
		switch {
		case inTransaction: // its tables are there: not it is run again, but the index is built
			*rebuilt = true
			text := x.create("CREATE INDEX CONCURRENTLY IF NOT EXISTS", pgx.Identifier{m.schema}.Sanitize())
			if _, err := conn.ExecContext(ctx, text); err != nil {
				return fmt.Errorf("build index %s again: %w", x.Name, err)
			}
		case recorded(records, v):
			*rebuilt = true
			if err := m.ledger.Delete(ctx, conn, int64(v.number)); err != nil {
				return err
			}
		}
	}
	return nil
}

// beforeDown refuses what is newer than this program, and an index that is not
// ours to drop.
func (m *Migrator) beforeDown(ctx context.Context, conn *sql.Conn) error {
	records, err := m.ledger.records(ctx, conn)
	if err != nil {
		return err
	}
	if err := m.refuseNewer(records); err != nil || len(records) == 0 {
		return err
	}
	v := m.component.versions[records[0].number-1]
	for _, x := range v.indexes {
		f, err := lookUp(ctx, conn, m.schema, x)
		if err != nil {
			return err
		}
		if f.exists && !f.declared(x) {
			return m.indexDiffers(v, x, f)
		}
	}
	return nil
}

func (m *Migrator) refuseNewer(records []record) error {
	if len(records) == 0 || records[0].number <= m.component.known() {
		return nil
	}
	return fmt.Errorf("%w: component %s in schema %s is at version %d, this one knows up to %d; use the newer one",
		ErrNewer, m.component.name, m.schema, records[0].number, m.component.known())
}

func (m *Migrator) indexDiffers(v version, x Index, f found) error {
	return fmt.Errorf("version %d %s of component %s in schema %s: %w: %s; nothing was dropped: rename it or drop it, and run this again",
		v.number, v.name, m.component.name, m.schema, ErrIndexDiffers, f.differs(x))
}

func recorded(records []record, v version) bool {
	for _, r := range records {
		if r.number == v.number {
			return true
		}
	}
	return false
}
