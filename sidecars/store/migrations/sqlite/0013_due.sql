-- What is due, without the rows that were given up (trade_seq from 4611686018427387905 on): they never
-- settle, so no settlement sweep reads them. With trade_seq the index alone answers the settlement
-- calendar: SQLite does not see that the index's own condition is the query's.
drop index trades_to_settle;
create index trades_to_settle on trades (settlement_date, trade_seq)
  where status = 'Processing' and trade_seq < 4611686018427387905;
