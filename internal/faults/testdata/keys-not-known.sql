-- Rows of 0 to 20 days, each an hour older, under policies with a fault each.
create table jobs (
  id bigint generated always as identity primary key, queue text not null default 'q',
  state text not null, created_at timestamptz not null, finished_at timestamptz, payload text);
create index jobs_age on jobs (finished_at, id);
insert into jobs (state, created_at, finished_at) select 'done', now() - interval '30 days', now() - g * interval '1 day' - interval '1 hour' from generate_series(0,20) g;
