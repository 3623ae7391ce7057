-- The key with which a control source signs what it publishes, so that a message
-- of another hand is known from one of its own, also when a restored database has
-- forgotten the change that the message tells of.
create table source_keys (
  source      text primary key not null,
  signing_key text not null
) strict;
