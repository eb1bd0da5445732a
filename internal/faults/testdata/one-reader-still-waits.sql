-- Events are done for some of their readers, and not for all of them.
create table events (
  id bigint generated always as identity primary key, kind text not null,
  recorded_at timestamptz not null, policy text, keep_seconds int, payload jsonb);
create index events_age on events (recorded_at, id);
create table deliveries (
  id bigint generated always as identity primary key,
  event_id bigint not null references events (id),
  receiver text not null, state text not null, updated_at timestamptz not null default now());
create index deliveries_event on deliveries (event_id, state);
insert into events (kind, recorded_at) select 'k', now() - interval '200 days' from generate_series(1,4);
insert into deliveries (event_id, receiver, state) values
 (1,'a','succeeded'),(1,'b','cancelled'),(1,'c','dead'),
 (2,'a','succeeded'),(2,'b','pending'),(2,'c','succeeded'),
 (3,'a','claimed'),(3,'b','dead'),(3,'c','dead'),
 (4,'a','dead'),(4,'b','succeeded');
