-- What is due, without the rows that were given up (trade_seq from 4611686018427387905 on): they never
-- settle, so no settlement sweep reads them.
drop index trades_to_settle;
create index trades_to_settle on trades (settlement_date)
  where status = 'Processing' and trade_seq < 4611686018427387905;
