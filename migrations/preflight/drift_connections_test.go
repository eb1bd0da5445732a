package preflight

const (
	noSecretLeft = `CHECK (((revoked_at IS NULL) OR (secret IS NULL)))`
	listed       = `btree (tenant_id collate pg_catalog."C", created_at, id collate pg_catalog."C") where (revoked_at IS NULL)`
)

var driftsOfConnections = []drift{
	{name: "none"},
	{name: "what is left to those who run it", sql: `alter table @.connections owner to preflight_other; grant select on @.connections to public; alter table @.connections set (fillfactor = 70)`},

	// what keeps tenants apart
	{name: "tenants by another collation", sql: `create collation aside.other from "POSIX"; alter table @.connections alter tenant_id type text collate aside.other`,
		want: []string{`refused: column connections.tenant_id, collation: expected pg_catalog."C", found aside.other`,
			"refused: index connections.connections_listed, definition: expected " + listed + `, found btree (tenant_id collate aside.other, created_at, id collate pg_catalog."C") where (revoked_at IS NULL)`}},
	{name: "the locale's order", sql: `alter table @.connections alter id type text collate "default"`,
		want: []string{`refused: column connections.id, collation: expected pg_catalog."C", found the type's own`,
			"refused: index connections.connections_listed, definition: expected " + listed + `, found btree (tenant_id collate pg_catalog."C", created_at, id) where (revoked_at IS NULL)`}},
	{name: "an id of all tenants", sql: `alter table @.connections drop constraint connections_pkey, add constraint connections_pkey primary key (id)`,
		want: []string{"refused: constraint connections.connections_pkey, definition: expected PRIMARY KEY (tenant_id, id), found PRIMARY KEY (id)"}},
	{name: "row security", sql: `alter table @.connections enable row level security`, want: []string{"refused: table connections, row security: expected off, found on"}},

	// what a revocation is held by
	{name: "a secret may stay", sql: `alter table @.connections drop constraint connections_revoked_secret_check`,
		want: []string{"refused: constraint connections.connections_revoked_secret_check: expected " + noSecretLeft + ", found nothing of this name"}},
	{name: "secrets as text", sql: `alter table @.connections drop constraint connections_secret_check; alter table @.connections alter secret type text using encode(secret, 'hex')`,
		want: []string{
			"refused: column connections.secret, type: expected bytea, found text",
			"refused: constraint connections.connections_secret_check: expected CHECK (((octet_length(secret) >= 1) AND (octet_length(secret) <= 65536))), found nothing of this name",
		}},
	{name: "a list of all", sql: `drop index @.connections_listed; create index connections_listed on @.connections (tenant_id, created_at, id)`,
		want: []string{"refused: index connections.connections_listed, definition: expected " + listed +
			", found btree (tenant_id collate pg_catalog.\"C\", created_at, id collate pg_catalog.\"C\")"}},
	{name: "no list", sql: `drop index @.connections_listed`, want: []string{"refused: index connections.connections_listed: expected " + listed + ", found nothing of this name"}},

	// what would keep rows from a purge, or take others along
	{name: "trigger", sql: `create trigger veto before delete on @.connections for each row execute function suppress_redundant_updates_trigger()`,
		want: []string{"refused: trigger connections.veto: expected nothing, found CREATE TRIGGER veto BEFORE DELETE ON @.connections FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()"}},
	{name: "a table that refers", sql: `create table aside.used (tenant text, id text, constraint used_by foreign key (tenant, id) references @.connections on delete cascade)`,
		want: []string{"refused: constraint connections.used_by of aside.used: expected nothing, found FOREIGN KEY (tenant, id) REFERENCES @.connections(tenant_id, id) ON DELETE CASCADE"}},
}
