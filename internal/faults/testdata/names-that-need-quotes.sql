-- Schemas, tables, columns and indexes whose names are no plain words.
create schema "Audit-Log";
create type "Audit-Log"."Status" as enum ('Done','Open');
create table "Audit-Log"."Run ""Events""" ("Id" bigint primary key, "order" "Audit-Log"."Status", "createdAt" timestamptz not null);
create index "Idx.Created At" on "Audit-Log"."Run ""Events""" ("createdAt");
insert into "Audit-Log"."Run ""Events""" select g, case when g <= 6 then 'Done' else 'Open' end::"Audit-Log"."Status", now() - interval '90 days' from generate_series(1,8) g;
create table "select" (id int primary key, "group" text, "user" timestamptz not null);
create index select_age on "select" ("user");
insert into "select" values (1, 'done', now() - interval '90 days'), (2, 'open', now() - interval '90 days');
