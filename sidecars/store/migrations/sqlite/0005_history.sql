-- The history that fills this database: one row, written by the first start whose
-- journal agrees with the rows. What has another history neither reads nor writes here.
create table history (
  id      integer primary key check (id = 1),
  genesis text not null,  -- hex SHA-256 of the journal's genesis record
  origin  integer not null -- digest of trade 1; 0 while the journal has none
) strict;
