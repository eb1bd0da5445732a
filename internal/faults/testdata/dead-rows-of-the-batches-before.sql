-- Many batches, and a session with an old snapshot keeps what they leave from being cleaned up.
create table dd (id bigint primary key, at timestamptz not null, pad text);
insert into dd select g, now() - interval '90 days' + g * interval '1 second', repeat('p', 100) from generate_series(1,200000) g;
create index dd_at on dd (at, id);
vacuum analyze dd;
