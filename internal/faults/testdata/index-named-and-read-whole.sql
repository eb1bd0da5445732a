-- Of two indexes with the age only one narrows what is read.
create table wi (id bigint generated always as identity primary key, owner int not null, at timestamptz not null);
insert into wi (owner, at) select g % 10, now() - g * interval '1 second' from generate_series(1,100000) g;
create index wi_owner_at on wi (owner, at);
create index wi_at on wi (at);
analyze wi;
