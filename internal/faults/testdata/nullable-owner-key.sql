-- A column of the key to the owner can be null, and null equals nothing.
create table jobs (
  id bigint generated always as identity primary key, queue text not null default 'q',
  state text not null, created_at timestamptz not null, finished_at timestamptz, payload text);
create index jobs_age on jobs (finished_at, id);
create table r2 (tenant text, id bigint not null, status text not null);
create unique index r2_key on r2 (coalesce(tenant,''), id);
create table e2 (tenant text, run_id bigint not null, created_at timestamptz not null);
create index e2_age on e2 (created_at);
insert into r2 values (null, 1, 'completed'), ('a', 1, 'running'), ('a', 2, 'completed');
insert into e2 select t, i, now() - interval '90 days' from (values (null::text,1),('a',1),('a',2)) v(t,i), generate_series(1,3);
