-- The state is an enum, to which a label is added later.
create type st as enum ('queued','running','done','failed');
create table j_enum (id int primary key, state st not null, at timestamptz not null);
create index j_enum_age on j_enum (at);
insert into j_enum select g, (array['queued','running','done','failed'])[1 + g % 4]::st, now() - interval '90 days' from generate_series(1,40) g;
