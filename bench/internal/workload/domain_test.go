package workload

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// filledAll fills a database with populations that stand on each other, the last one named.
func filledAll(t *testing.T, fills ...func(context.Context, *pgx.ConnConfig) error) *pgtest.DB {
	t.Helper()
	return filled(t, func(ctx context.Context, config *pgx.ConnConfig) error {
		for _, fill := range fills {
			if err := fill(ctx, config); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestDomain holds what the documents say of the populations of domain events.
func TestDomain(t *testing.T) {
	d := Domain{Own: 500, Held: 50, History: 600}
	due, fan := d.WithDue(400), d.WithFanout(3000)
	db := filledAll(t, d.Population().Fill, d.Parked().Fill, due.Fill, fan.Fill)
	if got := d.Times(10, 1); got != (Domain{5000, 500, 600}) || got.Live() != 5500 || got.Deliveries() != 28_300 {
		t.Errorf("ten times the live events is %+v, %d deliveries", got, got.Deliveries())
	}
	const old = "SELECT id FROM domain_events ORDER BY id LIMIT 1150"
	for _, c := range []struct {
		what, sql string
		want      int64
	}{
		{"events", "SELECT count(*) FROM domain_events", 1551},
		{"deliveries", "SELECT count(*) FROM domain_event_deliveries", 4450 + 1200 + 3000},
		{"deliveries of those that are not due", "SELECT count(*) FROM domain_event_deliveries WHERE event_id IN (" + old + ")", int64(d.Deliveries())},
		{"own windows that are not over", "SELECT count(*) FROM domain_events WHERE expires_at >= '2025-01-01 UTC'", 500},
		{"held events", "SELECT count(*) FROM domain_events WHERE parked AND retention_policy = 'SUCCEEDED'", 50},
		{"their dead letters", "SELECT count(*) FROM domain_event_deliveries WHERE event_id IN (" + old + ") AND status = 'dead'", 50},
		{"old events past the default window", "SELECT count(*) FROM domain_events WHERE id IN (" + old + ") AND recorded_at < timestamptz '2025-01-01 UTC' - interval '90 days'", 0},
		{"events of the future", "SELECT count(*) FROM domain_events WHERE recorded_at >= '2025-01-01 UTC'", 0},
		{"owed deliveries", "SELECT count(*) FROM domain_event_deliveries WHERE finished_at IS NULL", 0},
		{"orphaned deliveries", "SELECT count(*) FROM domain_event_deliveries d WHERE NOT EXISTS (SELECT FROM domain_events e WHERE e.id = d.event_id)", 0},
		{"events out of the order of their ages", "SELECT count(*) FROM (SELECT recorded_at < lag(recorded_at) OVER (ORDER BY id) AS bad FROM (" + old + ") o JOIN domain_events e USING (id)) x WHERE bad", 0},
		{"due by the default window", "SELECT count(*) FROM domain_events WHERE retention_seconds IS NULL AND recorded_at < timestamptz '2025-01-01 UTC' - interval '90 days'", 100},
		{"due by their own", "SELECT count(*) FROM domain_events WHERE expires_at < '2025-01-01 UTC'", 100},
		{"due as SUCCEEDED", "SELECT count(*) FROM domain_events WHERE retention_policy = 'SUCCEEDED' AND NOT parked", 100},
		{"due as SETTLED, the large one too", "SELECT count(*) FROM domain_events WHERE retention_policy = 'SETTLED'", 101},
		{"deliveries of the large one", "SELECT max(n) FROM (SELECT count(*) AS n FROM domain_event_deliveries GROUP BY event_id) x", 3000},
	} {
		if got := db.Int(t, c.sql); got != c.want {
			t.Errorf("%s: %d; want %d", c.what, got, c.want)
		}
	}
	if w := db.Int(t, "SELECT avg(pg_column_size(e.*))::bigint FROM domain_events e"); w < 320 || w > 380 {
		t.Errorf("an event has %d bytes; want some 350", w)
	}
	owed := filledAll(t, d.Population().Fill, d.Parked().Fill, func(ctx context.Context, config *pgx.ConnConfig) error {
		return within(ctx, config, Backlog(70)...)
	})
	if got := owed.Int(t, "SELECT count(*) FROM domain_events e JOIN domain_event_deliveries d ON d.event_id = e.id WHERE e.retention_policy = 'SETTLED' AND d.status = 'failed' AND e.recorded_at < '2025-01-01 UTC'"); got != 70 {
		t.Errorf("%d events are owed; want 70", got)
	}
}

// TestRecording holds that the plain tables are the component's, without what retention needs and with all else.
func TestRecording(t *testing.T) {
	db := filled(t, Recording().Fill)
	const columns = `SELECT coalesce(string_agg(attname || ' ' || format_type(atttypid, atttypmod) || ' ' || attnotnull || ' ' || atthasdef || ' ' || attidentity::text, ', ' ORDER BY attname), '')
	  FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped AND attname NOT IN ('retention_policy', 'retention_seconds', 'parked', 'expires_at') AND attrelid = `
	for _, table := range []string{"domain_events", "domain_event_deliveries"} {
		conn, err := pgx.Connect(t.Context(), db.DSN)
		if err != nil {
			t.Fatal(err)
		}
		var got, want string
		for schema, to := range map[string]*string{"plain": &got, "public": &want} {
			if err := conn.QueryRow(t.Context(), columns+"'"+schema+"."+table+"'::regclass").Scan(to); err != nil {
				t.Fatal(err)
			}
		}
		_ = conn.Close(t.Context())
		if got != want || want == "" {
			t.Errorf("%s has the columns\n%s; want\n%s", table, got, want)
		}
	}
	for _, c := range []struct {
		what, sql string
		want      int64
	}{
		{"columns of plain events", "SELECT count(*) FROM pg_attribute WHERE attnum > 0 AND attrelid = 'plain.domain_events'::regclass", 8},
		{"indexes that plain events lack", "SELECT (SELECT count(*) FROM pg_index WHERE indrelid = 'public.domain_events'::regclass) - (SELECT count(*) FROM pg_index WHERE indrelid = 'plain.domain_events'::regclass)", 4},
		{"indexes that plain deliveries lack", "SELECT (SELECT count(*) FROM pg_index WHERE indrelid = 'public.domain_event_deliveries'::regclass) - (SELECT count(*) FROM pg_index WHERE indrelid = 'plain.domain_event_deliveries'::regclass)", 0},
		{"foreign keys of plain deliveries", "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND conrelid = 'plain.domain_event_deliveries'::regclass AND confrelid = 'plain.domain_events'::regclass", 1},
		{"checks of plain events", "SELECT count(*) FROM pg_constraint WHERE contype = 'c' AND conrelid = 'plain.domain_events'::regclass", 2},
		{"triggers of plain deliveries", "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = 'plain.domain_event_deliveries'::regclass", 0},
	} {
		if got := db.Int(t, c.sql); got != c.want {
			t.Errorf("%s: %d; want %d", c.what, got, c.want)
		}
	}
	conn, err := pgx.Connect(t.Context(), db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, k := range Kinds() {
		for _, schema := range []string{"plain", "public"} {
			for _, sql := range append(slices.Clone(k.Ready(schema, 100)), k.SQL(schema, 1, 60), k.SQL(schema, 61, 40)) {
				if _, err := conn.Exec(t.Context(), sql); err != nil {
					t.Fatalf("%s in %s: %v", k.Name, schema, err)
				}
			}
		}
	}
	for _, schema := range []string{"plain", "public"} {
		if got := db.Int(t, "SELECT count(*) FROM "+schema+".domain_event_deliveries WHERE status = 'succeeded'"); got != 100 {
			t.Errorf("%d deliveries are acknowledged in %s; want 100", got, schema)
		}
	}
}
