-- Ids and kinds are bytea: they may hold any byte, and are ordered by bytes.

CREATE SEQUENCE contextd_incarnations;

-- One row for each session. Every write to the session moves its version, by which writers find out
-- that another came first.
CREATE TABLE contextd_sessions (
  id bytea PRIMARY KEY,
  incarnation bigint NOT NULL UNIQUE, -- also the number of the segment that the session writes
  version bigint NOT NULL,
  info bytea NOT NULL,                -- contextd.storage.v1.Session
  head bigint NOT NULL,               -- the newest event's seq
  state bytea NOT NULL,               -- contextd.storage.v1.Head after it, complete
  puts bigint NOT NULL,               -- how many artifacts were put into its segment
  artifact_bytes bigint NOT NULL
);

-- Which sessions show a segment: the one that writes it all of it, its forks the events up to up_to
-- and of the artifacts those of the first puts puts. What no row covers is deleted.
CREATE TABLE contextd_shares (
  segment bigint NOT NULL,
  incarnation bigint NOT NULL,
  up_to bigint NOT NULL,
  puts bigint NOT NULL,
  PRIMARY KEY (incarnation, segment)
);
CREATE INDEX contextd_shares_segment ON contextd_shares (segment, up_to);

CREATE TABLE contextd_events (
  segment bigint NOT NULL,
  seq bigint NOT NULL,
  id_hash bytea NOT NULL,   -- SHA-256 of the event's id
  digest bytea NOT NULL,    -- SHA-256 of what it says
  record bytea NOT NULL,    -- contextd.storage.v1.Event without head
  head bytea NOT NULL,      -- contextd.storage.v1.Head without chain
  chain bytea NOT NULL,     -- SHA-256 over the chain before, record and head
  log_bytes bigint NOT NULL, -- content bytes of the log up to here
  PRIMARY KEY (segment, seq),
  UNIQUE (segment, id_hash)
);

CREATE TABLE contextd_artifacts (
  segment bigint NOT NULL,
  kind bytea NOT NULL,
  seq bigint NOT NULL,
  id bytea NOT NULL,
  put bigint NOT NULL,      -- the number of the put that wrote this version
  value bytea NOT NULL,
  PRIMARY KEY (segment, kind, seq, id, put)
);
