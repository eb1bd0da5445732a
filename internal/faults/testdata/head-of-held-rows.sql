-- Many old rows of live runs stand before the few that are due.
create table runs (
  tenant text not null, id bigint not null, status text not null,
  started_at timestamptz, finished_at timestamptz, primary key (tenant, id));
create table run_events (
  tenant text not null, run_id bigint not null, seq int not null,
  created_at timestamptz not null, body jsonb,
  primary key (tenant, run_id, seq));
create index run_events_age on run_events (created_at, tenant, run_id);
insert into runs select 't1', g, 'waiting_approval', now() - interval '300 days', null from generate_series(1,100) g;
insert into runs values ('t1', 101, 'completed', now() - interval '90 days', now() - interval '90 days');
insert into run_events select 't1', 1 + g % 100, g, now() - interval '200 days' + g * interval '1 second', null from generate_series(1,100000) g;
insert into run_events select 't1', 101, g, now() - interval '60 days', null from generate_series(1,10) g;
analyze;
