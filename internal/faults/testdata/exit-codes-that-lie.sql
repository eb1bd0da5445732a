-- Three due rows, and everything that can go wrong around them.
create table jobs (
  id bigint generated always as identity primary key, queue text not null default 'q',
  state text not null, created_at timestamptz not null, finished_at timestamptz, payload text);
create index jobs_age on jobs (finished_at, id);
insert into jobs (state, created_at, finished_at) select 'done', now() - interval '40 days', now() - interval '39 days' from generate_series(1,3);
