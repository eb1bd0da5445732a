-- A table refuses deletes unless a setting is on.
create table jobs (
  id bigint generated always as identity primary key, queue text not null default 'q',
  state text not null, created_at timestamptz not null, finished_at timestamptz, payload text);
create index jobs_age on jobs (finished_at, id);
create function no_del() returns trigger language plpgsql as $$ begin if current_setting('app.retention', true) is distinct from 'on' then raise exception 'append only' using errcode = 'P0001'; end if; return old; end $$;
create trigger jobs_ro before delete on jobs for each row execute function no_del();
insert into jobs (state, created_at, finished_at) select 'done', now() - interval '40 days', now() - interval '39 days' from generate_series(1,5);
