-- Fresh rows and one from 1970: a window whose cutoff is no date must not fall back to one that deletes.
create table jobs (
  id bigint generated always as identity primary key, queue text not null default 'q',
  state text not null, created_at timestamptz not null, finished_at timestamptz, payload text);
create index jobs_age on jobs (finished_at, id);
insert into jobs (state, created_at, finished_at) select 'done', now(), now() - interval '1 minute' from generate_series(1,5);
insert into jobs (state, created_at, finished_at) values ('done', '1970-01-01', '1970-01-01');
