-- The oldest due row is referenced by a table that the policy does not know.
create table jobs (
  id bigint generated always as identity primary key, queue text not null default 'q',
  state text not null, created_at timestamptz not null, finished_at timestamptz, payload text);
create index jobs_age on jobs (finished_at, id);
create table pins (job_id bigint not null references jobs (id));
insert into jobs (state, created_at, finished_at) select 'done', now() - interval '40 days', now() - interval '30 days' + g * interval '1 minute' from generate_series(1,50) g;
insert into pins values (1);
