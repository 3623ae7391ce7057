-- A break of a booking from outside as GET /recon/breaks shows it: with the fields in which the
-- statement differs, first seen since both sides are there, last seen now.
create or replace view breaks_v as
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
  union all select 'EXTERNAL', t.id, null,
    array_to_string(array[
      case when s.account_id <> t.account_id then 'account' end,
      case when s.security <> t.security then 'security' end,
      case when s.side <> t.side then 'side' end,
      case when s.quantity <> t.quantity then 'quantity' end,
      case when s.price <> t.price then 'price' end,
      case when s.executed_at <> t.executed_at then 'timestamp' end], ','),
    t.account_id, t.security, t.side, t.quantity, t.price, t.executed_at,
    greatest(t.booked_at, s.loaded_at),
    cast(extract(epoch from now()) * 1000 as bigint)
  from trades t left join recon_statement s on s.id = t.id
  where t.trade_seq > 2305843009213693952 and t.trade_seq <= 4611686018427387904
    and t.id like 'ext-%' and (s.id is null or s.account_id <> t.account_id
      or s.security <> t.security or s.side <> t.side or s.quantity <> t.quantity
      or s.price <> t.price or s.executed_at <> t.executed_at)
  union all select 'EXTERNAL', s.id, null, '',
    s.account_id, s.security, s.side, s.quantity, s.price, s.executed_at,
    s.loaded_at, cast(extract(epoch from now()) * 1000 as bigint)
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
