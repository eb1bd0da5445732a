-- One event of three has 20,000 deliveries.
create table events (
  id bigint generated always as identity primary key, kind text not null,
  recorded_at timestamptz not null, policy text, keep_seconds int, payload jsonb);
create index events_age on events (recorded_at, id);
create table deliveries (
  id bigint generated always as identity primary key,
  event_id bigint not null references events (id),
  receiver text not null, state text not null, updated_at timestamptz not null default now());
create index deliveries_event on deliveries (event_id, state);
insert into events (kind, recorded_at) select 'k', now() - interval '200 days' from generate_series(1,3);
insert into deliveries (event_id, receiver, state) select 2, 'r' || g, 'succeeded' from generate_series(1,20000) g;
insert into deliveries (event_id, receiver, state) values (1,'r','succeeded'), (3,'r','succeeded');
