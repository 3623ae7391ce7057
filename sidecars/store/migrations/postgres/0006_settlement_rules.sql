-- By what rules settlement dates were computed, in the order in which they came into force:
-- for the trades from first_seq on, and for what was booked from booked_from on. rules is
-- empty for rows that a build before this table booked by rules that are not known.
-- forces_from is since when settlement_forces has every settlement by hand.
create table settlement_rules (
  n           bigint primary key,
  rules       text not null,
  first_seq   bigint not null,
  booked_from bigint not null, -- epoch milliseconds, like the next one
  forces_from bigint not null
);

-- The trades that were settled by hand.
create table settlement_forces (
  trade_seq bigint primary key,
  forced_at bigint not null -- epoch milliseconds
);
