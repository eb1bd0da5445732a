-- A flag that holds rows is true, false and null.
create table jobs (
  id bigint generated always as identity primary key, queue text not null default 'q',
  state text not null, created_at timestamptz not null, finished_at timestamptz, payload text);
create index jobs_age on jobs (finished_at, id);
alter table jobs add column hold boolean;
insert into jobs (state, created_at, finished_at, hold) select 'done', now() - interval '40 days', now() - interval '39 days', h from unnest(array[true,false,null]) h, generate_series(1,4);
