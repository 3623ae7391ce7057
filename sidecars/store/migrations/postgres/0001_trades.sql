-- The trade rows and the cursors of what follows the journal. The checks keep
-- out what could not be read back: a sweep must not stop at one edited row.
create table trades (
  id              text primary key not null,
  trade_seq       bigint unique not null check (trade_seq > 0),
  account_id      bigint not null check (account_id between 0 and 4294967295),
  security        text not null,
  side            text not null check (side in ('Buy', 'Sell')),
  quantity        bigint not null,
  price           bigint not null, -- x 1e6
  status          text not null check (status in ('Processing', 'Settled')),
  settlement_date date not null check (settlement_date between '0001-01-01'::date and '9999-12-31'::date),
  executed_at     bigint not null, -- epoch milliseconds, like the next two
  booked_at       bigint not null,
  updated_at      bigint not null,
  order_id        text,
  sequence        bigint check (sequence > 0)
);

create index trades_by_account on trades (account_id, trade_seq);

create index trades_to_settle on trades (settlement_date) where status = 'Processing';

create table cursors (
  name  text primary key not null,
  value bigint not null check (value >= 0)
);
