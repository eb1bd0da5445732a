-- A key is checked at commit, when the rows are counted already.
create table pd (id int primary key, at timestamptz not null);
create index pd_age on pd (at);
create table cd (id int primary key, pd_id int references pd deferrable initially deferred);
insert into pd select g, now() - interval '90 days' from generate_series(1,10) g;
insert into cd values (1, 7);
