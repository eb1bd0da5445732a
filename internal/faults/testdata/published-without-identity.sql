-- A table in a publication has nothing by which a subscriber could find a row.
create table lg (id int, at timestamptz not null); create index lg_age on lg (at);
insert into lg select g, now() - interval '90 days' from generate_series(1,9) g;
create publication pub_all for table lg;
