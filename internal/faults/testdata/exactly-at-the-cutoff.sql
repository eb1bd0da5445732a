-- One row at the cutoff, one a microsecond before it and one a microsecond after.
create table t_edge (id int primary key, at timestamptz not null);
create index t_edge_age on t_edge (at);
insert into t_edge values (1, '2025-01-30 00:00:00.000000+00'), (2, '2025-01-29 23:59:59.999999+00'), (3, '2025-01-30 00:00:00.000001+00');
