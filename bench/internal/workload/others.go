package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// once is one statement for all.
func once(name, about, sql string, args ...any) Subject {
	return Subject{Name: name, About: about, Open: ready(func(ctx context.Context, conn *pgx.Conn, each func(Batch) error) error {
		return loop(ctx, 0, each, func(ctx context.Context) (int, bool, error) {
			tag, err := conn.Exec(ctx, sql, args...)
			return int(tag.RowsAffected()), true, err
		})
	})}
}

// repeated is statements that are run one after the other, each until it removes less than its limit.
func repeated(name, about string, limit int, statements ...statement) Subject {
	return Subject{Name: name, About: about, Limit: limit, Open: ready(func(ctx context.Context, conn *pgx.Conn, each func(Batch) error) error {
		for _, s := range statements {
			err := loop(ctx, limit, each, func(ctx context.Context) (int, bool, error) {
				tag, err := conn.Exec(ctx, s.sql, append(slices.Clone(s.args), limit)...)
				return int(tag.RowsAffected()), int(tag.RowsAffected()) < limit, err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})}
}

// statement takes its limit as the last parameter.
type statement struct {
	sql  string
	args []any
}

// inStates is a condition with the states as literals, as people write it.
func inStates(column string, states []string) string {
	return column + " IN ('" + strings.Join(states, "', '") + "')"
}

// Unbounded removes all due events by one DELETE.
func Unbounded() Subject {
	_, terminal := States()
	return once("one DELETE", "one unbounded DELETE", `DELETE FROM run_events e USING runs r
 WHERE r.tenant_id = e.tenant_id AND r.id = e.run_id AND e.created_at < $1 AND `+inStates("r.status", terminal), EventsCutoff().Time())
}

// CtidIn removes the oldest due events by `ctid IN (SELECT .. LIMIT n)`.
func CtidIn(limit int) Subject { return CtidInAt(limit, Now) }

// CtidInAnew is the same with a plan made for each batch. pgx keeps a statement prepared, and the server goes over to one plan
// for all values after five batches, which is another one.
func CtidInAnew(limit int) Subject {
	s := CtidIn(limit)
	open := s.Open
	s.Name, s.About = "ctid IN, planned anew", s.About+", with a plan for each batch"
	s.Open = func(ctx context.Context, conn *pgx.Conn) (Drain, error) {
		if _, err := conn.Exec(ctx, "SET plan_cache_mode = force_custom_plan"); err != nil {
			return nil, err
		}
		return open(ctx, conn)
	}
	return s
}

// CtidInAt is the same at another time.
func CtidInAt(limit int, now time.Time) Subject {
	_, terminal := States()
	return repeated("ctid IN", "ctid IN (SELECT .. JOIN .. ORDER BY age LIMIT n)", limit, statement{`DELETE FROM run_events WHERE ctid IN (
 SELECT e.ctid FROM run_events e JOIN runs r ON r.tenant_id = e.tenant_id AND r.id = e.run_id
  WHERE e.created_at < $1 AND ` + inStates("r.status", terminal) + ` ORDER BY e.created_at LIMIT $2)`, []any{now.Add(-eventsWindow)}})
}

type eventKey struct {
	Tenant, Run string
	Sequence    int64
}

// KeysFetched fetches the keys of the oldest due events and removes them by a second statement.
func KeysFetched(limit int) Subject {
	_, terminal := States()
	fetch := `SELECT e.tenant_id, e.run_id, e.sequence FROM run_events e JOIN runs r ON r.tenant_id = e.tenant_id AND r.id = e.run_id
 WHERE e.created_at < $1 AND ` + inStates("r.status", terminal) + ` ORDER BY e.created_at LIMIT $2`
	remove := `DELETE FROM run_events WHERE (tenant_id, run_id, sequence) IN (SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]))`
	return Subject{Name: "keys fetched", About: "keys fetched, then deleted by key in a second statement", Limit: limit, Open: ready(func(ctx context.Context, conn *pgx.Conn, each func(Batch) error) error {
		return loop(ctx, limit, each, func(ctx context.Context) (int, bool, error) {
			rows, err := conn.Query(ctx, fetch, EventsCutoff().Time(), limit)
			if err != nil {
				return 0, false, err
			}
			keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[eventKey])
			if err != nil || len(keys) == 0 {
				return 0, true, err
			}
			var tenants, runs []string
			var sequences []int64
			for _, k := range keys {
				tenants, runs, sequences = append(tenants, k.Tenant), append(runs, k.Run), append(sequences, k.Sequence)
			}
			tag, err := conn.Exec(ctx, remove, tenants, runs, sequences)
			return int(tag.RowsAffected()), len(keys) < limit, err
		})
	})}
}

// rangeSettings are those under which the form was measured first: one plan, the same for each batch.
const rangeSettings = `SELECT set_config('synchronous_commit', 'off', true), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
 set_config('work_mem', '16MB', true), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_nestloop', 'off', true),
 set_config('enable_mergejoin', 'off', true), set_config('max_parallel_workers_per_gather', '0', true), pg_stat_get_xact_tuples_deleted('run_events'::regclass)`

// AgeRange removes a range of ages: nothing is picked, so what the range holds when a row was waited for goes too. The owners
// are locked as ours are.
func AgeRange(limit int) Subject {
	_, terminal := States()
	lets := inStates("r.status", terminal)
	within := "e.created_at < coalesce((SELECT g.at FROM edge g), $1::timestamptz) AND e.created_at >= $2::timestamptz"
	batch := `WITH edge AS MATERIALIZED (
  SELECT e.created_at AS at FROM ONLY run_events e WHERE e.created_at < $1::timestamptz AND e.created_at >= $2::timestamptz ORDER BY e.created_at OFFSET $3::int LIMIT 1),
keys AS MATERIALIZED (
  SELECT e.tenant_id, e.run_id, count(*) AS n FROM ONLY run_events e WHERE ` + within + ` GROUP BY 1, 2 LIMIT 100000),
owners AS MATERIALIZED (
  SELECT k.*, l.got FROM keys k LEFT JOIN LATERAL (
    SELECT true AS got FROM runs r WHERE r.tenant_id = k.tenant_id AND r.id = k.run_id AND ` + lets + ` FOR SHARE SKIP LOCKED) l ON true),
gone AS (
  DELETE FROM ONLY run_events e WHERE ` + within + ` AND (e.tenant_id, e.run_id) IN (SELECT o.tenant_id, o.run_id FROM owners o WHERE o.got))
SELECT coalesce(sum(o.n), 0)::bigint, (SELECT g.at::text FROM edge g) FROM owners o`
	return Subject{Name: "age range", About: "a range of ages deleted as it is, by a cursor, owners locked", Limit: limit, Open: ready(func(ctx context.Context, conn *pgx.Conn, each func(Batch) error) error {
		cutoff, after := EventsCutoff().Time().Format(time.RFC3339Nano), "1990-01-01 UTC"
		return loop(ctx, limit, each, func(ctx context.Context) (int, bool, error) {
			b := &pgx.Batch{}
			b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
			b.Queue(rangeSettings)
			b.Queue(batch, cutoff, after, limit)
			b.Queue("SELECT pg_stat_get_xact_tuples_deleted('run_events'::regclass)")
			b.Queue("COMMIT")
			removed, edge, err := rangeAnswers(conn.SendBatch(ctx, b))
			if err != nil {
				return 0, false, fmt.Errorf("batch from %s: %w", after, err)
			}
			if edge == nil {
				return removed, true, nil
			}
			after = *edge
			return removed, false, nil
		})
	})}
}

// rangeAnswers reads what the range's transaction answers: how many rows went, and where the next one goes on.
func rangeAnswers(br pgx.BatchResults) (removed int, edge *string, err error) {
	defer func() {
		if e := br.Close(); err == nil {
			err = e
		}
	}()
	if _, err = br.Exec(); err != nil {
		return 0, nil, err
	}
	before, examined, behind := 0, 0, 0
	settings := []any{new(string), new(string), new(string), new(string), new(string), new(string), new(string), new(string), new(string), &before}
	if err = br.QueryRow().Scan(settings...); err != nil {
		return 0, nil, err
	}
	if err = br.QueryRow().Scan(&examined, &edge); err != nil {
		return 0, nil, err
	}
	if err = br.QueryRow().Scan(&behind); err != nil {
		return 0, nil, err
	}
	_, err = br.Exec()
	return behind - before, edge, err
}

// dueJobs are the conditions under which jobs are due, by state.
func dueJobs() (conditions []string, cutoffs []any) {
	for n, w := range jobWindows {
		conditions = append(conditions, fmt.Sprintf("state = '%s' AND finalized_at < $%d", w.state, n+1))
		cutoffs = append(cutoffs, Now.Add(-w.window))
	}
	return conditions, cutoffs
}

func anyOf(conditions []string) string { return "(" + strings.Join(conditions, ") OR (") + ")" }

// JobsUnbounded removes all due jobs by one DELETE.
func JobsUnbounded() Subject {
	conditions, cutoffs := dueJobs()
	return once("one DELETE", "one unbounded DELETE, states OR-ed", "DELETE FROM jobs WHERE "+anyOf(conditions), cutoffs...)
}

// JobsIDIn removes due jobs in the order of their ids, all states in one statement.
func JobsIDIn(limit int) Subject {
	conditions, cutoffs := dueJobs()
	sql := fmt.Sprintf("DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE %s ORDER BY id LIMIT $%d)", anyOf(conditions), len(cutoffs)+1)
	return repeated("id IN, OR-ed", "id IN (SELECT id .. ORDER BY id LIMIT n), states OR-ed in one statement", limit, statement{sql, cutoffs})
}

// JobsIDInByState removes due jobs in the order of their ids, a statement for each state.
func JobsIDInByState(limit int) Subject {
	var ss []statement
	for _, w := range jobWindows {
		ss = append(ss, statement{"DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE state = '" + w.state + "' AND finalized_at < $1 ORDER BY id LIMIT $2)", []any{Now.Add(-w.window)}})
	}
	return repeated("id IN, by state", "id IN (SELECT id .. ORDER BY id LIMIT n), one statement for each state", limit, ss...)
}

// JobsFetched fetches the ids of due jobs and removes them by a second statement.
func JobsFetched(limit int) Subject {
	conditions, cutoffs := dueJobs()
	fetch := fmt.Sprintf("SELECT id FROM jobs WHERE %s ORDER BY id LIMIT $%d", anyOf(conditions), len(cutoffs)+1)
	return Subject{Name: "ids fetched", About: "ids fetched, then deleted by id in a second statement", Limit: limit, Open: ready(func(ctx context.Context, conn *pgx.Conn, each func(Batch) error) error {
		return loop(ctx, limit, each, func(ctx context.Context) (int, bool, error) {
			rows, err := conn.Query(ctx, fetch, append(slices.Clone(cutoffs), limit)...)
			if err != nil {
				return 0, false, err
			}
			ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
			if err != nil || len(ids) == 0 {
				return 0, true, err
			}
			tag, err := conn.Exec(ctx, "DELETE FROM jobs WHERE id = ANY ($1)", ids)
			return int(tag.RowsAffected()), len(ids) < limit, err
		})
	})}
}
