package plancases

import et "github.com/prunectl/prunectl/explaintest"

// Schema makes the tables, analysed and vacuumed but for the last two statements' sake: those are the caller's to run.
const Schema = `
CREATE TABLE runs (tenant_id text NOT NULL, id text NOT NULL, status text NOT NULL, PRIMARY KEY (tenant_id, id));
CREATE TABLE run_events (tenant_id text NOT NULL, run_id text NOT NULL, sequence int NOT NULL, kind varchar(20), created_at timestamptz NOT NULL, note text,
  PRIMARY KEY (tenant_id, run_id, sequence));
CREATE INDEX run_events_retention ON run_events (created_at, tenant_id, run_id, sequence);
CREATE INDEX run_events_kind ON run_events (kind, sequence);
INSERT INTO runs SELECT 'tenant-' || g % 20, 'run-' || g, CASE WHEN g % 50 = 0 THEN 'running' ELSE 'completed' END FROM generate_series(0, 999) g;
INSERT INTO run_events SELECT 'tenant-' || g / 20 % 20, 'run-' || g / 20, g % 20, CASE WHEN g % 1000 = 0 THEN 'rare' ELSE 'step' END,
  timestamptz '2026-01-01 00:00:00+00' + g * interval '1 minute', repeat('n', 50) FROM generate_series(0, 19999) g;
CREATE TABLE jobs (id bigint PRIMARY KEY, state text NOT NULL, finished_at timestamptz, note text);
CREATE INDEX jobs_state ON jobs (state, finished_at);
INSERT INTO jobs SELECT g, (ARRAY['done', 'failed', 'running'])[1 + g % 3], timestamptz '2026-01-01 00:00:00+00' + g * interval '1 minute', repeat('n', 50) FROM generate_series(1, 15000) g;
CREATE TABLE deliveries (id bigint NOT NULL, created_at timestamptz NOT NULL, note text) PARTITION BY RANGE (created_at);
CREATE TABLE deliveries_january PARTITION OF deliveries FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE deliveries_february PARTITION OF deliveries FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
CREATE INDEX deliveries_age ON deliveries (created_at);
INSERT INTO deliveries SELECT g, timestamptz '2026-01-01 00:00:00+00' + g * interval '5 minutes', repeat('n', 80) FROM generate_series(0, 16000) g;
CREATE SCHEMA "Audit-Log";
CREATE TABLE "Audit-Log"."Run ""Events""" ("Id" bigint, "createdAt" timestamptz NOT NULL, name text);
CREATE INDEX "Idx.Created At" ON "Audit-Log"."Run ""Events""" ("createdAt", "Id");
CREATE INDEX "Lower" ON "Audit-Log"."Run ""Events""" (lower(name), (("Id" + 1)));
INSERT INTO "Audit-Log"."Run ""Events""" SELECT g, timestamptz '2026-01-01 00:00:00+00' + g * interval '1 minute', 'N' || g FROM generate_series(1, 15000) g;`

// Catalog is what a server says of the indexes and partitions of Schema.
func Catalog() et.Catalog {
	public := func(name string) et.Name { return et.Name{Schema: "public", Name: name} }
	audit := func(name string) et.Name { return et.Name{Schema: "Audit-Log", Name: name} }
	table := func(name et.Name, parents ...et.Name) et.Table {
		return et.Table{Name: name, Parents: parents, Analyzed: true, Rows: 20_000, Pages: 300}
	}
	index := func(name et.Name, columns ...string) et.Index {
		return et.Index{Name: name, Method: "btree", Columns: columns}
	}
	leaf := func(month string) et.Index {
		x := index(public("deliveries_"+month+"_created_at_idx"), "created_at")
		x.Parents = []et.Name{public("deliveries_age")}
		return x
	}
	return et.Catalog{
		Tables: []et.Table{
			table(public("runs")), table(public("run_events")), table(public("jobs")), table(audit(`Run "Events"`)), table(public("deliveries")),
			table(public("deliveries_january"), public("deliveries")), table(public("deliveries_february"), public("deliveries")),
		},
		Indexes: []et.Index{
			index(public("runs_pkey"), "tenant_id", "id"), index(public("run_events_pkey"), "tenant_id", "run_id", "sequence"),
			index(public("run_events_retention"), "created_at", "tenant_id", "run_id", "sequence"), index(public("run_events_kind"), "kind", "sequence"),
			index(public("jobs_pkey"), "id"), index(public("jobs_state"), "state", "finished_at"),
			leaf("january"), leaf("february"),
			index(audit("Idx.Created At"), `"createdAt"`, `"Id"`), index(audit("Lower"), "lower(name)", `(("Id" + 1))`),
		},
	}
}
