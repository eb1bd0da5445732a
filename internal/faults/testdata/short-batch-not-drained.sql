-- Every row is due; another session moves some of them to other places on disk while the sweep runs.
create table jobs (
  id bigint generated always as identity primary key, queue text not null default 'q',
  state text not null, created_at timestamptz not null, finished_at timestamptz, payload text);
create index jobs_age on jobs (finished_at, id);
insert into jobs (state, created_at, finished_at) select 'failed', now() - interval '40 days', now() - interval '30 days' + g * interval '1 minute' from generate_series(1,60) g;
