-- Held, due and orphaned rows at once: a dry run must say what a real one does.
create table runs (
  tenant text not null, id bigint not null, status text not null,
  started_at timestamptz, finished_at timestamptz, primary key (tenant, id));
create table run_events (
  tenant text not null, run_id bigint not null, seq int not null,
  created_at timestamptz not null, body jsonb,
  primary key (tenant, run_id, seq));
create index run_events_age on run_events (created_at, tenant, run_id);
insert into runs values ('t1', 1, 'waiting_approval', now() - interval '200 days', null), ('t1', 2, 'completed', now() - interval '90 days', now() - interval '89 days');
insert into run_events select 't1', 1, g, now() - interval '190 days' + g * interval '1 minute', null from generate_series(1,150) g;
insert into run_events select 't1', 2, g, now() - interval '80 days' + g * interval '1 minute', null from generate_series(1,40) g;
insert into run_events select 't1', 9, g, now() - interval '80 days', null from generate_series(1,5) g;
