-- Failed jobs, some of which are put back to work while the sweep is on its way.
create table jobs (
  id bigint generated always as identity primary key, queue text not null default 'q',
  state text not null, created_at timestamptz not null, finished_at timestamptz, payload text);
create index jobs_age on jobs (finished_at, id);
insert into jobs (state, created_at, finished_at) select 'failed', now() - interval '40 days', now() - interval '30 days' + g * interval '1 second' from generate_series(1,5) g;
