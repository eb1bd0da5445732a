-- The states of the policy are not those of the column, but for one.
create table runs (
  tenant text not null, id bigint not null, status text not null,
  started_at timestamptz, finished_at timestamptz, primary key (tenant, id));
create table run_events (
  tenant text not null, run_id bigint not null, seq int not null,
  created_at timestamptz not null, body jsonb,
  primary key (tenant, run_id, seq));
create index run_events_age on run_events (created_at, tenant, run_id);
alter table runs add constraint runs_status_ck check (status in ('queued','running','success','failed','skipped'));
insert into runs select 't1', g, (array['success','failed','skipped','success'])[1 + g % 4], now() - interval '90 days', now() - interval '90 days' from generate_series(1,40) g;
insert into run_events select 't1', g, 1, now() - interval '90 days', null from generate_series(1,40) g;
