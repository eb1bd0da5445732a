-- A cascade leads into a large table that no index finds the rows of.
create table pr (id bigint primary key, at timestamptz not null);
create index pr_age on pr (at);
create table chd (id bigint generated always as identity primary key, pr_id bigint not null references pr on delete cascade, pad text);
insert into pr select g, now() - interval '90 days' + g * interval '1 second' from generate_series(1,2000) g;
insert into chd (pr_id, pad) select 1 + g % 2000, repeat('x', 80) from generate_series(1,300000) g;
analyze;
