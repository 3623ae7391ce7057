-- What has settled, by date: the settlement calendar counts it. What is due has trades_to_settle.
create index trades_settled on trades (settlement_date) where status = 'Settled';
