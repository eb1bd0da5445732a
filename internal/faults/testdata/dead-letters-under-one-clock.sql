-- Dead letters that are young and old, of events under each policy. Their ids are in the order of age, then none, SUCCEEDED, SETTLED.
create table events (
  id bigint generated always as identity primary key, kind text not null,
  recorded_at timestamptz not null, policy text, keep_seconds int, payload jsonb);
create index events_age on events (recorded_at, id);
create table deliveries (
  id bigint generated always as identity primary key,
  event_id bigint not null references events (id),
  receiver text not null, state text not null, updated_at timestamptz not null default now());
create index deliveries_event on deliveries (event_id, state);
insert into events (kind, recorded_at, policy) select 'k', now() - a * interval '1 day', p from unnest(array[10,200]) a, unnest(array[null,'SUCCEEDED','SETTLED']) with ordinality u(p,o) order by a, o;
insert into deliveries (event_id, receiver, state) select id, 'r', 'dead' from events;
