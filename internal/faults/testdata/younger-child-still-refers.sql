-- Young bills refer to a quarter of the old runs.
create table runs (
  tenant text not null, id bigint not null, status text not null,
  started_at timestamptz, finished_at timestamptz, primary key (tenant, id));
create table run_events (
  tenant text not null, run_id bigint not null, seq int not null,
  created_at timestamptz not null, body jsonb,
  primary key (tenant, run_id, seq));
create index run_events_age on run_events (created_at, tenant, run_id);
create index runs_age on runs (finished_at, tenant, id);
insert into runs select 't1', g, 'completed', now() - interval '90 days', now() - interval '90 days' from generate_series(1,20) g;
create table bills (id int primary key, tenant text, run_id bigint, created_at timestamptz not null, foreign key (tenant, run_id) references runs (tenant, id));
create index bills_run on bills (tenant, run_id);
insert into bills select g, 't1', g * 4, now() - interval '2 days' from generate_series(1,5) g;
