-- A third of the finished rows has no age, a third is past its window, a third is not.
create table jobs (
  id bigint generated always as identity primary key, queue text not null default 'q',
  state text not null, created_at timestamptz not null, finished_at timestamptz, payload text);
create index jobs_age on jobs (finished_at, id);
insert into jobs (state, created_at, finished_at) select 'done', now() - interval '90 days', f from unnest(array[null, now() - interval '80 days', now()]::timestamptz[]) f, generate_series(1,4);
