-- One row inside the window, one held, one orphan: why nothing went must be told.
create table runs (
  tenant text not null, id bigint not null, status text not null,
  started_at timestamptz, finished_at timestamptz, primary key (tenant, id));
create table run_events (
  tenant text not null, run_id bigint not null, seq int not null,
  created_at timestamptz not null, body jsonb,
  primary key (tenant, run_id, seq));
create index run_events_age on run_events (created_at, tenant, run_id);
insert into runs values ('a', 1, 'completed', now(), now()), ('a', 2, 'running', now() - interval '90 days', null);
insert into run_events values ('a', 1, 1, now(), null), ('a', 2, 1, now() - interval '90 days', null), ('a', 3, 1, now() - interval '90 days', null);
