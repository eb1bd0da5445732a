package workload

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/bench/internal/place"
)

// Recording is a database with the component's tables empty in the schema public, and the same without what retention needs in
// the schema plain: without the columns of it, their indexes, the checks on them, and the triggers.
func Recording() place.Population {
	return place.Population{Name: "recording", Fill: func(ctx context.Context, config *pgx.ConnConfig) error {
		if err := migrated(ctx, config, "domain_events"); err != nil {
			return err
		}
		return within(ctx, config, plainSQL)
	}}
}

// plainSQL derives the plain tables from the catalog. The columns are made anew and not dropped: a dropped one leaves its bit in
// every row.
const plainSQL = `
CREATE SCHEMA plain;
CREATE TABLE plain.domain_event_deliveries (LIKE public.domain_event_deliveries INCLUDING ALL);
DO $$
DECLARE
  extra  text[] := ARRAY['retention_policy', 'retention_seconds', 'parked', 'expires_at'];
  owns   text;
  def    text;
BEGIN
  SELECT string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)) || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
                    || CASE WHEN a.attidentity = 'a' THEN ' GENERATED ALWAYS AS IDENTITY' WHEN a.atthasdef THEN ' DEFAULT ' || pg_get_expr(f.adbin, f.adrelid) ELSE '' END, ', ' ORDER BY a.attnum)
    INTO def
    FROM pg_attribute a LEFT JOIN pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
   WHERE a.attrelid = 'public.domain_events'::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> ALL (extra);
  EXECUTE 'CREATE TABLE plain.domain_events (' || def || ')';
  FOR def IN SELECT pg_get_constraintdef(c.oid) FROM pg_constraint c
              WHERE c.conrelid = 'public.domain_events'::regclass AND c.contype IN ('p', 'u', 'c')
                AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey) AND a.attname = ANY (extra)) LOOP
    EXECUTE 'ALTER TABLE plain.domain_events ADD ' || def;
  END LOOP;
  owns := array_to_string(extra, '|');
  FOR def IN SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i
              WHERE i.indrelid = 'public.domain_events'::regclass AND NOT i.indisprimary AND pg_get_indexdef(i.indexrelid) !~ owns LOOP
    EXECUTE replace(def, ' ON public.', ' ON plain.');
  END LOOP;
  ALTER TABLE plain.domain_event_deliveries ADD FOREIGN KEY (event_id) REFERENCES plain.domain_events (id);
END
$$`

// Kind is something that is done to domain events in the course of work.
type Kind struct {
	Name string
	Rows string // what one of it is
	// insert has the columns of retention and their values; both "" on tables that have none.
	columns, values string
	ack             bool
	// prepare is done to the plain tables before.
	prepare []string
}

// Kinds are an event by the default window, by a window of its own, and by a policy, each with three deliveries, and a delivery
// that is acknowledged; last the first again where the index of open deliveries, which a sweep and others look at, counts as
// what retention needs.
func Kinds() []Kind {
	return []Kind{
		{Name: "default event", Rows: "event with 3 deliveries"},
		{Name: "event with a window of its own", Rows: "event with 3 deliveries", columns: ", retention_seconds", values: ", 86400 * (ARRAY[1, 7, 14, 30, 90, 180, 365])[1 + g % 7]"},
		{Name: "event with a policy", Rows: "event with 3 deliveries", columns: ", retention_policy", values: ", CASE g % 2 WHEN 0 THEN 'SUCCEEDED' ELSE 'SETTLED' END"},
		{Name: "acknowledgement", Rows: "delivery", ack: true},
		{Name: "default event, the index of open deliveries too", Rows: "event with 3 deliveries", prepare: []string{"DROP INDEX plain.domain_event_deliveries_event_id_status_idx"}},
	}
}

// Ready are the statements that make the tables of a schema ready for n of the kind: for acknowledgements, claimed deliveries of
// events that have a policy where there are any.
func (k Kind) Ready(schema string, n int) []string {
	switch {
	case !k.ack && schema == "plain":
		return k.prepare
	case !k.ack:
		return nil
	}
	claim := Kind{}
	if schema == "public" {
		claim = Kinds()[2]
	}
	return []string{
		claim.SQL(schema, 1, (n+2)/3),
		fmt.Sprintf("UPDATE %s.domain_event_deliveries SET status = 'claimed', claimed_by = 'worker-1', claimed_at = now(), claimed_until = now() + interval '1 minute', attempts = 1", schema),
		fmt.Sprintf("VACUUM (ANALYZE) %s.domain_event_deliveries", schema),
	}
}

// SQL is one statement that does n of the kind, the first of them numbered from.
func (k Kind) SQL(schema string, from, n int) string {
	if k.ack {
		return fmt.Sprintf(`UPDATE %s.domain_event_deliveries SET status = 'succeeded', claimed_by = NULL, claimed_at = NULL, claimed_until = NULL, finished_at = now()
 WHERE id BETWEEN %d AND %d AND status = 'claimed' AND claimed_by = 'worker-1'`, schema, from, from+n-1)
	}
	columns, values := k.columns, k.values
	if schema != "public" {
		columns, values = "", ""
	}
	return strings.NewReplacer("<schema>", schema, "<columns>", columns, "<values>", values).Replace(fmt.Sprintf(`
WITH e AS (INSERT INTO <schema>.domain_events (type, payload<columns>)
           SELECT 'order.placed', jsonb_build_object('order', g, 'note', repeat('x', 200))<values> FROM generate_series(%d, %d) g RETURNING id)
INSERT INTO <schema>.domain_event_deliveries (event_id, receiver) SELECT e.id, 'receiver-' || d FROM e, generate_series(1, 3) d`, from, from+n-1))
}
