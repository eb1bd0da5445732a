-- A concurrent build of the index failed: its name is there, and nothing uses it.
create table jobs (
  id bigint generated always as identity primary key, queue text not null default 'q',
  state text not null, created_at timestamptz not null, finished_at timestamptz, payload text);
create index jobs_age on jobs (finished_at, id);
insert into jobs (state, created_at, finished_at) select 'done', now(), now() - g * interval '1 minute' from generate_series(1,50000) g;
analyze jobs;
update pg_index set indisvalid = false where indexrelid = 'jobs_age'::regclass;
