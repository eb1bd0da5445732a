-- Finished runs and their events, all of them due.
create table runs (
  tenant text not null, id bigint not null, status text not null,
  started_at timestamptz, finished_at timestamptz, primary key (tenant, id));
create table run_events (
  tenant text not null, run_id bigint not null, seq int not null,
  created_at timestamptz not null, body jsonb,
  primary key (tenant, run_id, seq));
create index run_events_age on run_events (created_at, tenant, run_id);
create index runs_age on runs (finished_at, tenant, id);
insert into runs select 't1', g, 'completed', now() - interval '90 days', now() - interval '90 days' from generate_series(1,10) g;
insert into run_events select 't1', g, s, now() - interval '80 days', null from generate_series(1,10) g, generate_series(1,3) s;
