-- The two control sources: their records, one counter row each, and the outbox
-- from which their changes are published. Published rows stay.
create table accounts (
  id           bigint primary key not null check (id between 1 and 4294967295),
  display_name text not null,
  enabled      boolean not null,
  version      bigint not null check (version > 0)
);

create table stocks (
  ticker       text primary key not null collate "C",
  company_name text not null,
  enabled      boolean not null,
  halted       boolean not null,
  version      bigint not null check (version > 0)
);

-- The counter row is taken in the business transaction: versions have no hole
-- and are in the order of the commits.
create table sources (
  source  text primary key not null,
  epoch   bigint not null check (epoch > 0),
  version bigint not null check (version >= 0)
);

create table outbox (
  source          text not null,
  version         bigint not null check (version > 0),
  epoch           bigint not null check (epoch > 0),
  payload         text not null,
  created_at      bigint not null, -- epoch milliseconds, like the next one
  published_at    bigint, -- with no sequence: superseded by an epoch that began after it
  stream_sequence bigint check (stream_sequence > 0), -- where the stream has it
  primary key (source, version)
);

create index outbox_unpublished on outbox (source, version) where published_at is null;
