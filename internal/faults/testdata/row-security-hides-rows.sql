-- Row security filters for the role that sweeps: it sees nothing to remove.
create table audit (id int primary key, tenant text not null, at timestamptz not null);
create index audit_age on audit (at);
insert into audit select g, 't' || g % 3, now() - interval '200 days' from generate_series(1,30) g;
alter table audit enable row level security; alter table audit force row level security;
create policy p on audit using (tenant = current_setting('app.tenant', true));
do $$ begin create role sweeper login; exception when duplicate_object then null; end $$;
grant select, delete on audit to sweeper;
