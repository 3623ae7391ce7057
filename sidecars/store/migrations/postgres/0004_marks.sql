-- Closing marks. A set is published once under its session date and version and
-- never changes: the row of eod_price_sets is what a second writer meets.
create table eod_price_sets (
  session_date date not null,
  version      bigint not null check (version between 1 and 4294967295),
  marks        bigint not null check (marks >= 0),
  sha256       text not null, -- of the set's canonical text
  published_at bigint not null, -- epoch milliseconds
  primary key (session_date, version)
);

create table eod_prices (
  session_date date not null,
  version      bigint not null,
  security     text not null collate "C",
  price        bigint not null check (price > 0), -- x 1e6
  quality      text not null, -- '' when the publisher says nothing
  primary key (session_date, version, security),
  foreign key (session_date, version) references eod_price_sets (session_date, version)
);
