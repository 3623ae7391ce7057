-- The version of the change that last said the flag; 0 is the record's own version. A
-- change that says nothing of a flag leaves it as it is, also where an operator has set
-- it by hand, so a replica must know which changes did.
alter table accounts add column enabled_version bigint not null default 0 check (enabled_version >= 0);
alter table stocks add column enabled_version bigint not null default 0 check (enabled_version >= 0);
alter table stocks add column halted_version bigint not null default 0 check (halted_version >= 0);
