-- The age is a time without a zone, and the program runs in another one.
create table t_naive (id int primary key, state text, at timestamp not null);
create index t_naive_age on t_naive (at);
insert into t_naive select g, 'done', timestamp '2025-01-29 22:00' + g * interval '30 minutes' from generate_series(1,8) g;
