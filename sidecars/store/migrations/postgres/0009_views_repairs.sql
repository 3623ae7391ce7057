-- Views for people and reports, and what repairs and bookings from outside need.
-- When each batch of the projection was booked: every row first_seq..last_seq has this
-- booked_at, unless whole is 0: then some of the rows were there before.
create table projection_batches (
  first_seq bigint not null,
  last_seq  bigint not null,
  booked_at bigint not null, -- epoch milliseconds
  whole     bigint not null check (whole in (0, 1)),
  primary key (first_seq, booked_at)
);

-- The trades that a message booked before a build that no longer books trades of the journal
-- by message. Their rows have no input sequence, and perhaps no order.
create table trades_by_message (
  trade_seq bigint primary key not null
);

insert into trades_by_message (trade_seq) select trade_seq from trades where sequence is null;

-- The statement with which bookings from outside (ids ext-...) are matched.
create table recon_statement (
  id          text primary key not null,
  account_id  bigint not null check (account_id between 0 and 4294967295),
  security    text not null,
  side        text not null check (side in ('Buy', 'Sell')),
  quantity    bigint not null,
  price       bigint not null, -- x 1e6
  executed_at bigint not null, -- epoch milliseconds, like the next one
  loaded_at   bigint not null
);

-- The repairs of rows, and below them each row as it was before.
create table recon_repairs (
  repair   bigint primary key not null,
  from_seq bigint not null,
  to_seq   bigint not null,
  subject  text not null,
  address  text not null,
  reason   text not null,
  begun_at bigint not null, -- epoch milliseconds, like the next one
  ended_at bigint,
  checked  bigint not null,
  repaired bigint not null
);

create table recon_repaired_rows (
  repair          bigint not null,
  trade_seq       bigint not null, -- the entry that was repaired
  n               bigint not null, -- an entry may have had the rows of two
  fields          text not null,
  id              text, -- null: there was no row
  row_seq         bigint,
  account_id      bigint,
  security        text,
  side            text,
  quantity        bigint,
  price           bigint,
  status          text,
  settlement_date text,
  executed_at     bigint,
  booked_at       bigint,
  updated_at      bigint,
  order_id        text,
  sequence        bigint,
  primary key (repair, trade_seq, n)
);

-- What a person or a report reads: prices as decimals, times as timestamps.
create view trades_v as select
  id, trade_seq, account_id, security, side, quantity,
  price * 0.000001 as price, status, settlement_date,
  case when executed_at between 0 and 253402300799999
    then timestamptz 'epoch' + executed_at * interval '1 millisecond' end as executed_at,
  case when booked_at between 0 and 253402300799999
    then timestamptz 'epoch' + booked_at * interval '1 millisecond' end as booked_at,
  case when updated_at between 0 and 253402300799999
    then timestamptz 'epoch' + updated_at * interval '1 millisecond' end as updated_at,
  order_id, sequence
from trades;

-- The open breaks, one row each.
create view breaks_v as
with all_breaks as (
  select 'MISSING_IN_PROJECTION' as class, 'trd-' || (lo + i) as trade_id, lo + i as trade_seq,
    '' as fields, null::bigint as account_id, null::text as security, null::text as side,
    null::bigint as quantity, null::bigint as price, null::bigint as executed_at,
    first_seen_at, greatest(first_seen_at, (select rechecked_at from recon_books)) as last_seen_at
  from recon_gaps, generate_series(0, hi - lo) as i where counted = 1
  union all select 'FIELD_MISMATCH', 'trd-' || trade_seq, trade_seq,
    array_to_string(array[
      case when fields & 1 <> 0 then 'account' end,
      case when fields & 2 <> 0 then 'security' end,
      case when fields & 4 <> 0 then 'side' end,
      case when fields & 8 <> 0 then 'quantity' end,
      case when fields & 16 <> 0 then 'price' end,
      case when fields & 32 <> 0 then 'timestamp' end,
      case when fields & 64 <> 0 then 'settlementDate' end,
      case when fields & 128 <> 0 then 'status' end,
      case when fields & 256 <> 0 then 'orderId' end,
      case when fields & 512 <> 0 then 'sequence' end,
      case when fields & 1024 <> 0 then 'bookedAt' end,
      case when fields & 2048 <> 0 then 'updatedAt' end], ','),
    account_id, security, case side when 0 then 'Buy' else 'Sell' end, quantity, price, executed_at,
    first_seen_at, greatest(last_seen_at, (select rechecked_at from recon_books))
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
  price * 0.000001 as price,
  case when executed_at between 0 and 253402300799999
    then timestamptz 'epoch' + executed_at * interval '1 millisecond' end as executed_at,
  case when first_seen_at between 0 and 253402300799999
    then timestamptz 'epoch' + first_seen_at * interval '1 millisecond' end as first_seen_at,
  case when last_seen_at between 0 and 253402300799999
    then timestamptz 'epoch' + last_seen_at * interval '1 millisecond' end as last_seen_at
from all_breaks;

comment on column trades.id is 'trd-<trade_seq> of a trade of the journal, ext-... of a booking from outside';
comment on column trades.trade_seq is 'the number of the fill in the journal; above 2^61 it only orders bookings from outside';
comment on column trades.account_id is 'the account of this side';
comment on column trades.security is 'ticker';
comment on column trades.side is 'Buy or Sell';
comment on column trades.quantity is 'whole units';
comment on column trades.price is 'price x 1,000,000';
comment on column trades.status is 'Processing until settlement, then Settled';
comment on column trades.settlement_date is 'when the trade is due, by the settlement calendar';
comment on column trades.executed_at is 'when it was executed, epoch milliseconds';
comment on column trades.booked_at is 'when this row was written, epoch milliseconds';
comment on column trades.updated_at is 'when this row last changed, epoch milliseconds';
comment on column trades.order_id is 'ord-<number>, null for a trade without an order';
comment on column trades.sequence is 'input sequence of the command that executed it, null for a booking from outside';
comment on column cursors.name is 'the follower';
comment on column cursors.value is 'the last position that it has dealt with';
comment on column recon_books.id is 'always 1';
comment on column recon_books.generation is 'raised by every change of the books';
comment on column recon_books.missing is 'entries without a row that count';
comment on column recon_books.pending is 'entries without a row within their grace';
comment on column recon_books.mismatches is 'entries whose row differs';
comment on column recon_books.orphans is 'rows without a fill';
comment on column recon_books.orphan_sweeps is 'how many orphan sweeps have begun';
comment on column recon_books.swept_at is 'last sweep that wrote anything, epoch milliseconds';
comment on column recon_books.rechecked_at is 'start of the last complete re-check of open breaks, epoch milliseconds';
comment on column recon_gaps.lo is 'first trade sequence of a range without rows';
comment on column recon_gaps.hi is 'last trade sequence of that range';
comment on column recon_gaps.first_seen_at is 'when the range was first seen without rows, epoch milliseconds';
comment on column recon_gaps.counted is '0 within the grace, else 1';
comment on column recon_mismatches.trade_seq is 'the entry whose row differs';
comment on column recon_mismatches.fields is 'bit set of the fields that differ; breaks_v spells them';
comment on column recon_mismatches.account_id is 'of the row as it was found';
comment on column recon_mismatches.security is 'of the row as it was found';
comment on column recon_mismatches.side is 'of the row as it was found: 0 Buy, 1 Sell';
comment on column recon_mismatches.quantity is 'of the row as it was found';
comment on column recon_mismatches.price is 'of the row as it was found, x 1,000,000';
comment on column recon_mismatches.executed_at is 'of the row as it was found, epoch milliseconds';
comment on column recon_mismatches.first_seen_at is 'when it was first found, epoch milliseconds';
comment on column recon_mismatches.last_seen_at is 'when its record last changed, epoch milliseconds';
comment on column recon_orphans.id is 'of the row that no fill gives';
comment on column recon_orphans.trade_seq is 'of that row';
comment on column recon_orphans.account_id is 'of that row';
comment on column recon_orphans.security is 'of that row';
comment on column recon_orphans.side is 'of that row: 0 Buy, 1 Sell';
comment on column recon_orphans.quantity is 'of that row';
comment on column recon_orphans.price is 'of that row, x 1,000,000';
comment on column recon_orphans.executed_at is 'of that row, epoch milliseconds';
comment on column recon_orphans.first_seen_at is 'first orphan sweep that found it, epoch milliseconds';
comment on column recon_orphans.last_seen_at is 'last orphan sweep that found it, epoch milliseconds';
comment on column recon_orphans.sweep is 'number of the last orphan sweep that found it';
comment on column recon_orphan_sweep.id is 'always 1';
comment on column recon_orphan_sweep.swept_at is 'end of the last orphan sweep, epoch milliseconds';
comment on column recon_orphan_sweep.local_trades is 'rows that were judged';
comment on column recon_orphan_sweep.history_trades is 'fills of the index';
comment on column recon_orphan_sweep.orphans is 'rows without a fill';
comment on column recon_orphan_sweep.orphan_ids is 'the first of their ids, a JSON array';
comment on column recon_orphan_sweep.truncated is '1 when there are more orphans than ids';
comment on column accounts.id is 'account number';
comment on column accounts.display_name is 'name';
comment on column accounts.enabled is 'false: its orders are refused';
comment on column accounts.version is 'of the change that wrote this record';
comment on column accounts.enabled_version is 'of the change that last said enabled; 0: the record''s own version';
comment on column stocks.ticker is 'security';
comment on column stocks.company_name is 'name';
comment on column stocks.enabled is 'false: its orders are refused';
comment on column stocks.halted is 'true: its orders are refused for now';
comment on column stocks.version is 'of the change that wrote this record';
comment on column stocks.enabled_version is 'of the change that last said enabled; 0: the record''s own version';
comment on column stocks.halted_version is 'of the change that last said halted; 0: the record''s own version';
comment on column sources.source is 'account or security';
comment on column sources.epoch is 'life of this source''s database';
comment on column sources.version is 'of the last change';
comment on column outbox.source is 'account or security';
comment on column outbox.version is 'of the change';
comment on column outbox.epoch is 'of the source when it changed';
comment on column outbox.payload is 'the message, JSON';
comment on column outbox.created_at is 'of the change, epoch milliseconds';
comment on column outbox.published_at is 'when the stream had it, epoch milliseconds; null: not yet';
comment on column outbox.stream_sequence is 'its number in the stream';
comment on column eod_price_sets.session_date is 'the day that closed';
comment on column eod_price_sets.version is 'of the set, from 1';
comment on column eod_price_sets.marks is 'how many prices the set has';
comment on column eod_price_sets.sha256 is 'of the set''s canonical text, hex';
comment on column eod_price_sets.published_at is 'epoch milliseconds';
comment on column eod_prices.session_date is 'the day that closed';
comment on column eod_prices.version is 'of the set';
comment on column eod_prices.security is 'ticker';
comment on column eod_prices.price is 'closing price x 1,000,000';
comment on column eod_prices.quality is 'as the publisher said; empty when it said nothing';
comment on column history.id is 'always 1';
comment on column history.genesis is 'SHA-256 of the genesis record of the journal that fills this database, hex';
comment on column history.origin is 'digest of trade 1; 0 while there is none';
comment on column settlement_rules.n is 'order in which the rules came into force';
comment on column settlement_rules.rules is 'their name; empty when not known';
comment on column settlement_rules.first_seq is 'in force for the trades from this sequence on';
comment on column settlement_rules.booked_from is 'and for what was booked from then on, epoch milliseconds';
comment on column settlement_rules.forces_from is 'since when every settlement by hand is recorded, epoch milliseconds';
comment on column settlement_forces.trade_seq is 'the trade that was settled by hand';
comment on column settlement_forces.forced_at is 'epoch milliseconds';
comment on column source_keys.source is 'account or security';
comment on column source_keys.signing_key is 'the key that signs what the source publishes';
comment on column schema_migrations.version is 'number of the migration';
comment on column schema_migrations.name is 'its file';
comment on column schema_migrations.checksum is 'SHA-256 of its text, hex';
comment on column schema_migrations.applied_at is 'epoch milliseconds';
comment on column projection_batches.first_seq is 'first trade sequence of the batch';
comment on column projection_batches.last_seq is 'last trade sequence of the batch';
comment on column projection_batches.booked_at is 'booked_at of its rows, epoch milliseconds';
comment on column projection_batches.whole is '1 when every row of the batch was new';
comment on column trades_by_message.trade_seq is 'a trade of the journal that an older build booked by message';
comment on column recon_statement.id is 'ext-... of the booking';
comment on column recon_statement.account_id is 'as the statement says';
comment on column recon_statement.security is 'as the statement says';
comment on column recon_statement.side is 'as the statement says';
comment on column recon_statement.quantity is 'as the statement says';
comment on column recon_statement.price is 'as the statement says, x 1,000,000';
comment on column recon_statement.executed_at is 'as the statement says, epoch milliseconds';
comment on column recon_statement.loaded_at is 'when this line was taken, epoch milliseconds';
comment on column recon_repairs.repair is 'number of the repair';
comment on column recon_repairs.from_seq is 'first trade sequence';
comment on column recon_repairs.to_seq is 'last trade sequence';
comment on column recon_repairs.subject is 'of the token that asked for it';
comment on column recon_repairs.address is 'from which it was asked for';
comment on column recon_repairs.reason is 'as it was given';
comment on column recon_repairs.begun_at is 'epoch milliseconds';
comment on column recon_repairs.ended_at is 'epoch milliseconds; null: it did not reach its end';
comment on column recon_repairs.checked is 'entries compared so far';
comment on column recon_repairs.repaired is 'entries made again so far';
comment on column recon_repaired_rows.repair is 'number of the repair';
comment on column recon_repaired_rows.trade_seq is 'the entry that was repaired';
comment on column recon_repaired_rows.n is '0, or 1 and more for further rows that were in its place';
comment on column recon_repaired_rows.fields is 'what differed, separated by commas';
comment on column recon_repaired_rows.id is 'of the row as it was; null: there was none';
comment on column recon_repaired_rows.row_seq is 'trade_seq as it was';
comment on column recon_repaired_rows.account_id is 'as it was';
comment on column recon_repaired_rows.security is 'as it was';
comment on column recon_repaired_rows.side is 'as it was';
comment on column recon_repaired_rows.quantity is 'as it was';
comment on column recon_repaired_rows.price is 'as it was, x 1,000,000';
comment on column recon_repaired_rows.status is 'as it was';
comment on column recon_repaired_rows.settlement_date is 'as it was';
comment on column recon_repaired_rows.executed_at is 'as it was, epoch milliseconds';
comment on column recon_repaired_rows.booked_at is 'as it was, epoch milliseconds';
comment on column recon_repaired_rows.updated_at is 'as it was, epoch milliseconds';
comment on column recon_repaired_rows.order_id is 'as it was';
comment on column recon_repaired_rows.sequence is 'as it was';
comment on column trades_v.id is 'as in trades';
comment on column trades_v.trade_seq is 'as in trades';
comment on column trades_v.account_id is 'as in trades';
comment on column trades_v.security is 'as in trades';
comment on column trades_v.side is 'as in trades';
comment on column trades_v.quantity is 'as in trades';
comment on column trades_v.price is 'decimal, in currency units';
comment on column trades_v.status is 'as in trades';
comment on column trades_v.settlement_date is 'as in trades';
comment on column trades_v.executed_at is 'when it was executed';
comment on column trades_v.booked_at is 'when the row was written';
comment on column trades_v.updated_at is 'when the row last changed';
comment on column trades_v.order_id is 'as in trades';
comment on column trades_v.sequence is 'as in trades';
comment on column breaks_v.class is 'MISSING_IN_PROJECTION, FIELD_MISMATCH, ORPHAN_IN_PROJECTION or EXTERNAL';
comment on column breaks_v.trade_id is 'id of the trade';
comment on column breaks_v.trade_seq is 'its trade sequence; null for a booking from outside';
comment on column breaks_v.fields is 'the fields that differ, separated by commas';
comment on column breaks_v.account_id is 'of the row; null when it is missing';
comment on column breaks_v.security is 'of the row';
comment on column breaks_v.side is 'of the row';
comment on column breaks_v.quantity is 'of the row';
comment on column breaks_v.price is 'of the row, decimal, in currency units';
comment on column breaks_v.executed_at is 'of the row';
comment on column breaks_v.first_seen_at is 'when the break was first seen';
comment on column breaks_v.last_seen_at is 'when the break was last seen';
