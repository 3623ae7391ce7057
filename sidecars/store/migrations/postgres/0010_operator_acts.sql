-- Acts of operators on this database that are not on record in the journal yet.
create table operator_acts (
  act         bigint primary key not null,
  kind        text not null,
  subject     text not null,
  address     text not null,
  reason      text not null,
  object      text not null, -- JSON, empty for none, like the next two
  old         text not null,
  new         text not null,
  made_at     bigint not null, -- epoch milliseconds
  sought_from bigint -- null: no note of it was submitted yet
);

comment on column operator_acts.act is 'numbers the acts, in their order';
comment on column operator_acts.kind is 'what was done, as GET /audit names it';
comment on column operator_acts.subject is 'by whose hand';
comment on column operator_acts.address is 'the machine that it came from';
comment on column operator_acts.reason is 'why, in the words of the operator';
comment on column operator_acts.object is 'what it was done to, a JSON object';
comment on column operator_acts.old is 'the value before, JSON';
comment on column operator_acts.new is 'the value after, JSON';
comment on column operator_acts.made_at is 'when it was done, epoch milliseconds';
comment on column operator_acts.sought_from is 'the journal may have it on record from this sequence on; null: it has not';
