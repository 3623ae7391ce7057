-- Reconciliation: the books (one row), and what is open.

create table recon_books (
  id                bigint primary key check (id = 1),
  generation        bigint not null,
  missing           bigint not null,
  pending           bigint not null,
  mismatches        bigint not null,
  orphans           bigint not null,
  orphan_sweeps     bigint not null,
  swept_at          bigint not null,
  rechecked_at      bigint not null
);

insert into recon_books values (1, 0, 0, 0, 0, 0, 0, 0, 0);

-- Entries lo..hi have no row, disjoint ranges. counted = 0 while they are pending.
create table recon_gaps (
  lo            bigint primary key,
  hi            bigint not null,
  first_seen_at bigint not null,
  counted       bigint not null
);

-- Entries whose row differs, with the row as it was found. fields is a bit set,
-- side 0 for Buy and 1 for Sell.
create table recon_mismatches (
  trade_seq     bigint primary key,
  fields        bigint not null,
  account_id    bigint not null,
  security      text not null,
  side          bigint not null,
  quantity      bigint not null,
  price         bigint not null,
  executed_at   bigint not null,
  first_seen_at bigint not null,
  last_seen_at  bigint not null
);

-- Rows that no fill gives. sweep is the number of the last orphan sweep that found it.
create table recon_orphans (
  id            text primary key,
  trade_seq     bigint not null,
  account_id    bigint not null,
  security      text not null,
  side          bigint not null,
  quantity      bigint not null,
  price         bigint not null,
  executed_at   bigint not null,
  first_seen_at bigint not null,
  last_seen_at  bigint not null,
  sweep         bigint not null
);

create index recon_orphans_sweep on recon_orphans (sweep);

-- The result of the last orphan sweep. orphan_ids is a JSON array.
create table recon_orphan_sweep (
  id             bigint primary key check (id = 1),
  swept_at       bigint not null,
  local_trades   bigint not null,
  history_trades bigint not null,
  orphans        bigint not null,
  orphan_ids     text not null,
  truncated      bigint not null
);
