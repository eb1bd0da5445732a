-- One event has a window of its own; most have none.
create table events (
  id bigint generated always as identity primary key, kind text not null,
  recorded_at timestamptz not null, policy text, keep_seconds int, payload jsonb);
create index events_age on events (recorded_at, id);
create table deliveries (
  id bigint generated always as identity primary key,
  event_id bigint not null references events (id),
  receiver text not null, state text not null, updated_at timestamptz not null default now());
create index deliveries_event on deliveries (event_id, state);
insert into events (kind, recorded_at, keep_seconds, policy) select 'k', now() - interval '100 days', null, null from generate_series(1,7);
insert into events (kind, recorded_at, keep_seconds) values ('k', now() - interval '100 days', 3600);
