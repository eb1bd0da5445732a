-- A run in each state, all of one age: being old is not being finished.
create table runs (
  tenant text not null, id bigint not null, status text not null,
  started_at timestamptz, finished_at timestamptz, primary key (tenant, id));
create table run_events (
  tenant text not null, run_id bigint not null, seq int not null,
  created_at timestamptz not null, body jsonb,
  primary key (tenant, run_id, seq));
create index run_events_age on run_events (created_at, tenant, run_id);
insert into runs select 't1', g, (array['completed','failed','cancelled','running','queued','waiting_approval','retry_pending','paused'])[g], now() - interval '120 days', null from generate_series(1,8) g;
insert into run_events select 't1', r, s, now() - interval '120 days', null from generate_series(1,8) r, generate_series(1,3) s;
