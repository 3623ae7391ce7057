-- Where the trades of a period lie, without reading the ones before it.
create index trades_by_time on trades (executed_at, trade_seq);
