-- Acts of operators on this database that are not on record in the journal yet.
create table operator_acts (
  act         integer primary key not null,
  kind        text not null,
  subject     text not null,
  address     text not null,
  reason      text not null,
  object      text not null, -- JSON, empty for none, like the next two
  old         text not null,
  new         text not null,
  made_at     integer not null, -- epoch milliseconds
  sought_from integer -- null: no note of it was submitted yet
) strict;
