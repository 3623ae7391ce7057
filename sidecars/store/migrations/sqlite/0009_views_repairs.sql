-- Views for people and reports, and what repairs and bookings from outside need.
-- When each batch of the projection was booked: every row first_seq..last_seq has this
-- booked_at, unless whole is 0: then some of the rows were there before.
create table projection_batches (
  first_seq integer not null,
  last_seq  integer not null,
  booked_at integer not null, -- epoch milliseconds
  whole     integer not null check (whole in (0, 1)),
  primary key (first_seq, booked_at)
) strict;

-- The trades that a message booked before a build that no longer books trades of the journal
-- by message. Their rows have no input sequence, and perhaps no order.
create table trades_by_message (
  trade_seq integer primary key not null
) strict;

insert into trades_by_message (trade_seq) select trade_seq from trades where sequence is null;

-- The statement with which bookings from outside (ids ext-...) are matched.
create table recon_statement (
  id          text primary key not null,
  account_id  integer not null check (account_id between 0 and 4294967295),
  security    text not null,
  side        text not null check (side in ('Buy', 'Sell')),
  quantity    integer not null,
  price       integer not null, -- x 1e6
  executed_at integer not null, -- epoch milliseconds, like the next one
  loaded_at   integer not null
) strict;

-- The repairs of rows, and below them each row as it was before.
create table recon_repairs (
  repair   integer primary key not null,
  from_seq integer not null,
  to_seq   integer not null,
  subject  text not null,
  address  text not null,
  reason   text not null,
  begun_at integer not null, -- epoch milliseconds, like the next one
  ended_at integer,
  checked  integer not null,
  repaired integer not null
) strict;

create table recon_repaired_rows (
  repair          integer not null,
  trade_seq       integer not null, -- the entry that was repaired
  n               integer not null, -- an entry may have had the rows of two
  fields          text not null,
  id              text, -- null: there was no row
  row_seq         integer,
  account_id      integer,
  security        text,
  side            text,
  quantity        integer,
  price           integer,
  status          text,
  settlement_date text,
  executed_at     integer,
  booked_at       integer,
  updated_at      integer,
  order_id        text,
  sequence        integer,
  primary key (repair, trade_seq, n)
) strict;

-- What a person or a report reads: prices as decimals, times as timestamps.
create view trades_v as select
  id, trade_seq, account_id, security, side, quantity,
  price / 1000000.0 as price, status, settlement_date,
  case when executed_at between 0 and 253402300799999 then
    strftime('%Y-%m-%dT%H:%M:%S', executed_at / 1000, 'unixepoch') || printf('.%03dZ', executed_at % 1000) end as executed_at,
  case when booked_at between 0 and 253402300799999 then
    strftime('%Y-%m-%dT%H:%M:%S', booked_at / 1000, 'unixepoch') || printf('.%03dZ', booked_at % 1000) end as booked_at,
  case when updated_at between 0 and 253402300799999 then
    strftime('%Y-%m-%dT%H:%M:%S', updated_at / 1000, 'unixepoch') || printf('.%03dZ', updated_at % 1000) end as updated_at,
  order_id, sequence
from trades;

-- The open breaks, one row each.
create view breaks_v as
with recursive absent (seq, hi, first_seen_at) as (
  select lo, hi, first_seen_at from recon_gaps where counted = 1
  union all select seq + 1, hi, first_seen_at from absent where seq < hi
), all_breaks as (
  select 'MISSING_IN_PROJECTION' as class, 'trd-' || seq as trade_id, seq as trade_seq,
    '' as fields, null as account_id, null as security, null as side,
    null as quantity, null as price, null as executed_at,
    first_seen_at, max(first_seen_at, (select rechecked_at from recon_books)) as last_seen_at
  from absent
  union all select 'FIELD_MISMATCH', 'trd-' || trade_seq, trade_seq,
    rtrim(
      case when fields & 1 then 'account,' else '' end ||
      case when fields & 2 then 'security,' else '' end ||
      case when fields & 4 then 'side,' else '' end ||
      case when fields & 8 then 'quantity,' else '' end ||
      case when fields & 16 then 'price,' else '' end ||
      case when fields & 32 then 'timestamp,' else '' end ||
      case when fields & 64 then 'settlementDate,' else '' end ||
      case when fields & 128 then 'status,' else '' end ||
      case when fields & 256 then 'orderId,' else '' end ||
      case when fields & 512 then 'sequence,' else '' end ||
      case when fields & 1024 then 'bookedAt,' else '' end ||
      case when fields & 2048 then 'updatedAt,' else '' end, ','),
    account_id, security, case side when 0 then 'Buy' else 'Sell' end, quantity, price, executed_at,
    first_seen_at, max(last_seen_at, (select rechecked_at from recon_books))
  from recon_mismatches
  union all select 'ORPHAN_IN_PROJECTION', id, trade_seq, '',
    account_id, security, case side when 0 then 'Buy' else 'Sell' end, quantity, price, executed_at,
    first_seen_at, last_seen_at
  from recon_orphans
  union all select 'EXTERNAL', t.id, null, '',
    t.account_id, t.security, t.side, t.quantity, t.price, t.executed_at,
    t.booked_at, t.booked_at
  from trades t where t.trade_seq > 2305843009213693952 and t.trade_seq <= 4611686018427387904
    and t.id like 'ext-%' and not exists (select 1 from recon_statement s where s.id = t.id
      and s.account_id = t.account_id and s.security = t.security and s.side = t.side
      and s.quantity = t.quantity and s.price = t.price and s.executed_at = t.executed_at)
  union all select 'EXTERNAL', s.id, null, '',
    s.account_id, s.security, s.side, s.quantity, s.price, s.executed_at,
    s.loaded_at, s.loaded_at
  from recon_statement s where not exists (select 1 from trades t where t.id = s.id)
)
select class, trade_id, trade_seq, fields, account_id, security, side, quantity,
  price / 1000000.0 as price,
  case when executed_at between 0 and 253402300799999 then
    strftime('%Y-%m-%dT%H:%M:%S', executed_at / 1000, 'unixepoch') || printf('.%03dZ', executed_at % 1000) end as executed_at,
  case when first_seen_at between 0 and 253402300799999 then
    strftime('%Y-%m-%dT%H:%M:%S', first_seen_at / 1000, 'unixepoch') || printf('.%03dZ', first_seen_at % 1000) end as first_seen_at,
  case when last_seen_at between 0 and 253402300799999 then
    strftime('%Y-%m-%dT%H:%M:%S', last_seen_at / 1000, 'unixepoch') || printf('.%03dZ', last_seen_at % 1000) end as last_seen_at
from all_breaks;
