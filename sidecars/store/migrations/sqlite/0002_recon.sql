-- Reconciliation: the books (one row), and what is open.

create table recon_books (
  id                integer primary key check (id = 1),
  generation        integer not null,
  missing           integer not null,
  pending           integer not null,
  mismatches        integer not null,
  orphans           integer not null,
  orphan_sweeps     integer not null,
  swept_at          integer not null,
  rechecked_at      integer not null
) strict;

insert into recon_books values (1, 0, 0, 0, 0, 0, 0, 0, 0);

-- Entries lo..hi have no row, disjoint ranges. counted = 0 while they are pending.
create table recon_gaps (
  lo            integer primary key,
  hi            integer not null,
  first_seen_at integer not null,
  counted       integer not null
) strict;

-- Entries whose row differs, with the row as it was found. fields is a bit set,
-- side 0 for Buy and 1 for Sell.
create table recon_mismatches (
  trade_seq     integer primary key,
  fields        integer not null,
  account_id    integer not null,
  security      text not null,
  side          integer not null,
  quantity      integer not null,
  price         integer not null,
  executed_at   integer not null,
  first_seen_at integer not null,
  last_seen_at  integer not null
) strict;

-- Rows that no fill gives. sweep is the number of the last orphan sweep that found it.
create table recon_orphans (
  id            text primary key,
  trade_seq     integer not null,
  account_id    integer not null,
  security      text not null,
  side          integer not null,
  quantity      integer not null,
  price         integer not null,
  executed_at   integer not null,
  first_seen_at integer not null,
  last_seen_at  integer not null,
  sweep         integer not null
) strict;

create index recon_orphans_sweep on recon_orphans (sweep);

-- The result of the last orphan sweep. orphan_ids is a JSON array.
create table recon_orphan_sweep (
  id             integer primary key check (id = 1),
  swept_at       integer not null,
  local_trades   integer not null,
  history_trades integer not null,
  orphans        integer not null,
  orphan_ids     text not null,
  truncated      integer not null
) strict;
