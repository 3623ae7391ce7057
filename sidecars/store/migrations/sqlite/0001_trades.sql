-- The trade rows and the cursors of what follows the journal. The checks keep
-- out what could not be read back: a sweep must not stop at one edited row.
create table trades (
  id              text primary key not null,
  trade_seq       integer unique not null check (trade_seq > 0),
  account_id      integer not null check (account_id between 0 and 4294967295),
  security        text not null,
  side            text not null check (side in ('Buy', 'Sell')),
  quantity        integer not null,
  price           integer not null, -- x 1e6
  status          text not null check (status in ('Processing', 'Settled')),
  settlement_date text not null check (settlement_date glob '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
  executed_at     integer not null, -- epoch milliseconds, like the next two
  booked_at       integer not null,
  updated_at      integer not null,
  order_id        text,
  sequence        integer check (sequence > 0)
) strict;

create index trades_by_account on trades (account_id, trade_seq);

create index trades_to_settle on trades (settlement_date) where status = 'Processing';

create table cursors (
  name  text primary key not null,
  value integer not null check (value >= 0)
) strict;
