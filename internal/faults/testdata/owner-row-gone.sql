-- Some events belong to a run that does not exist.
create table runs (
  tenant text not null, id bigint not null, status text not null,
  started_at timestamptz, finished_at timestamptz, primary key (tenant, id));
create table run_events (
  tenant text not null, run_id bigint not null, seq int not null,
  created_at timestamptz not null, body jsonb,
  primary key (tenant, run_id, seq));
create index run_events_age on run_events (created_at, tenant, run_id);
insert into runs values ('t1', 1, 'completed', now() - interval '90 days', now() - interval '90 days');
insert into run_events select 't1', r, s, now() - interval '90 days', null from unnest(array[1,9]) r, generate_series(1,5) s;
