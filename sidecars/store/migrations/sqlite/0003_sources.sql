-- The two control sources: their records, one counter row each, and the outbox
-- from which their changes are published. Published rows stay.
create table accounts (
  id           integer primary key not null check (id between 1 and 4294967295),
  display_name text not null,
  enabled      integer not null check (enabled in (0, 1)),
  version      integer not null check (version > 0)
) strict;

create table stocks (
  ticker       text primary key not null,
  company_name text not null,
  enabled      integer not null check (enabled in (0, 1)),
  halted       integer not null check (halted in (0, 1)),
  version      integer not null check (version > 0)
) strict;

-- The counter row is taken in the business transaction: versions have no hole
-- and are in the order of the commits.
create table sources (
  source  text primary key not null,
  epoch   integer not null check (epoch > 0),
  version integer not null check (version >= 0)
) strict;

create table outbox (
  source          text not null,
  version         integer not null check (version > 0),
  epoch           integer not null check (epoch > 0),
  payload         text not null,
  created_at      integer not null, -- epoch milliseconds, like the next one
  published_at    integer, -- with no sequence: superseded by an epoch that began after it
  stream_sequence integer check (stream_sequence > 0), -- where the stream has it
  primary key (source, version)
) strict;

create index outbox_unpublished on outbox (source, version) where published_at is null;
