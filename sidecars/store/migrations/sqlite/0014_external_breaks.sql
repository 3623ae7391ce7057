-- A break of a booking from outside as GET /recon/breaks shows it: with the fields in which the
-- statement differs, first seen since both sides are there, last seen now.
drop view breaks_v;

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
  union all select 'EXTERNAL', t.id, null,
    rtrim(
      case when s.account_id <> t.account_id then 'account,' else '' end ||
      case when s.security <> t.security then 'security,' else '' end ||
      case when s.side <> t.side then 'side,' else '' end ||
      case when s.quantity <> t.quantity then 'quantity,' else '' end ||
      case when s.price <> t.price then 'price,' else '' end ||
      case when s.executed_at <> t.executed_at then 'timestamp,' else '' end, ','),
    t.account_id, t.security, t.side, t.quantity, t.price, t.executed_at,
    max(t.booked_at, coalesce(s.loaded_at, 0)),
    cast(round((julianday('now') - 2440587.5) * 86400000) as integer)
  from trades t left join recon_statement s on s.id = t.id
  where t.trade_seq > 2305843009213693952 and t.trade_seq <= 4611686018427387904
    and t.id like 'ext-%' and (s.id is null or s.account_id <> t.account_id
      or s.security <> t.security or s.side <> t.side or s.quantity <> t.quantity
      or s.price <> t.price or s.executed_at <> t.executed_at)
  union all select 'EXTERNAL', s.id, null, '',
    s.account_id, s.security, s.side, s.quantity, s.price, s.executed_at,
    s.loaded_at, cast(round((julianday('now') - 2440587.5) * 86400000) as integer)
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
