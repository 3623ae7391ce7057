-- Closing marks. A set is published once under its session date and version and
-- never changes: the row of eod_price_sets is what a second writer meets.
create table eod_price_sets (
  session_date text not null,
  version      integer not null check (version between 1 and 4294967295),
  marks        integer not null check (marks >= 0),
  sha256       text not null, -- of the set's canonical text
  published_at integer not null, -- epoch milliseconds
  primary key (session_date, version)
) strict;

create table eod_prices (
  session_date text not null,
  version      integer not null,
  security     text not null,
  price        integer not null check (price > 0), -- x 1e6
  quality      text not null, -- '' when the publisher says nothing
  primary key (session_date, version, security),
  foreign key (session_date, version) references eod_price_sets (session_date, version)
) strict;
