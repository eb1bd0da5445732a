package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// writersSQL lists who has written to one of the tables in a transaction that is still open: the locks that INSERT, UPDATE
// and DELETE take, and stronger ones but those of VACUUM and of building an index. It is the statement that takes the
// snapshot, so that who is not in the snapshot is in the list, but for those who end in the instant between the two.
const writersSQL = `
SELECT clock_timestamp(), coalesce(w.pid, 0), coalesce(w.app, ''), coalesce(w.oid, 0)
  FROM (SELECT true) one
  LEFT JOIN (SELECT DISTINCT coalesce(l.pid, 0) AS pid, CASE WHEN l.pid IS NULL THEN 'a prepared transaction' ELSE a.application_name END AS app, l.relation AS oid
               FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
              WHERE l.locktype = 'relation' AND l.granted AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
                AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
                AND l.pid IS DISTINCT FROM pg_backend_pid() AND l.relation = ANY ($1::oid[])) w ON true
 ORDER BY 2, 4`

// Look counts what is left of the tenant, up to bound rows of each step, in one snapshot of all tables, and names who may
// be about to add some; see [tenant.Remover]. It has no timeout of its own beside those of its locks.
func (p *Purge) Look(ctx context.Context, bound int) (tenant.Proof, error) {
	if bound < 1 {
		return tenant.Proof{}, errors.New("a look counts up to one row at least")
	}
	var proof tenant.Proof
	err := p.db.read(ctx, "", func(ctx context.Context, q query) error {
		if err := p.writers(ctx, q, &proof); err != nil {
			return err
		}
		if err := q.exec(ctx, lookSettingsSQL(&p.purge)); err != nil {
			return err
		}
		for _, s := range p.steps {
			st := s.statement("look", s.lookSQL())
			var n int
			if err := q.row(ctx, st.sql, anys(st.with(map[string]string{argTenant: s.tenant, argLimit: strconv.Itoa(bound + 1)}).args)...).Scan(&n); err != nil {
				return fmt.Errorf("%s: %w", s.table().name, err)
			}
			proof.Left = append(proof.Left, tenant.Left{Rows: min(n, bound), More: n > bound})
		}
		return nil
	})
	if err != nil {
		return tenant.Proof{}, fmt.Errorf("look for rows of the tenant: %w", err)
	}
	return proof, nil
}

// writers takes the snapshot.
func (p *Purge) writers(ctx context.Context, q query, proof *tenant.Proof) error {
	tables := map[uint32]policy.Name{}
	var oids []string
	for _, s := range p.steps {
		for _, l := range s.chain {
			if _, ok := tables[l.table.oid]; !ok {
				tables[l.table.oid] = l.table.name
				oids = append(oids, strconv.FormatUint(uint64(l.table.oid), 10))
			}
		}
	}
	ws, err := all(ctx, q, writersSQL, func(r pgx.CollectableRow) (w tenant.Writer, err error) {
		var oid uint32
		err = r.Scan(&proof.At, &w.PID, &w.App, &oid)
		w.Table = tables[oid]
		return w, err
	}, "{"+strings.Join(oids, ",")+"}")
	for _, w := range ws {
		if !w.Table.IsZero() {
			proof.Writers = append(proof.Writers, w)
		}
	}
	proof.At = proof.At.UTC()
	return err
}

// lookSQL counts the tenant's rows of the step, up to a bound.
func (s *removal) lookSQL() statement {
	r := &renderer{}
	r.line("SELECT count(*) FROM (")
	if !s.child() {
		r.line("  SELECT FROM ONLY %s e", tableName(s.top().name))
	} else {
		r.line("  SELECT FROM (SELECT %s FROM ONLY %s e WHERE e.%s = %s) p", strings.Join(s.carried(1, "e"), ", "), tableName(s.top().name), ident(s.column().name), s.value(r))
		s.below(r)
	}
	if !s.child() {
		r.line("   WHERE e.%s = %s  -- whose", ident(s.column().name), s.value(r))
	}
	r.line("   LIMIT %s) x", r.arg(argLimit, "int"))
	return statement{r.b.String(), r.args}
}

// below joins the rows that refer to those of the alias p, one probe of a key after the other.
func (s *removal) below(r *renderer) {
	up := "p"
	for n := 1; n < len(s.chain); n++ {
		alias := "c" + strconv.Itoa(n)
		cols := []string{"true"}
		if n+1 < len(s.chain) {
			cols = s.carried(n+1, "x")
		}
		var on []string
		for i, k := range s.chain[n].key {
			on = append(on, "x."+ident(k.Child)+" = "+up+".r"+strconv.Itoa(i))
		}
		r.line("   CROSS JOIN LATERAL (SELECT %s FROM ONLY %s x WHERE %s OFFSET 0) %s", strings.Join(cols, ", "), tableName(s.chain[n].table.name), strings.Join(on, " AND "), alias)
		up = alias
	}
}
