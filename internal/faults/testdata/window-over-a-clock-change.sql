-- Hourly rows round a cutoff that lies on the other side of a change of the clock.
create table t_dst (id int primary key, at timestamptz not null);
create index t_dst_age on t_dst (at);
insert into t_dst select g, timestamptz '2025-03-25 06:00+00' + g * interval '1 hour' from generate_series(0,9) g;
