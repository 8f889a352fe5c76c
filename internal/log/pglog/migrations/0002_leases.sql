-- Which process does a piece of work of a session, until when.
CREATE TABLE contextd_leases (
  incarnation bigint NOT NULL REFERENCES contextd_sessions (incarnation) ON DELETE CASCADE,
  work bytea NOT NULL,
  holder bigint NOT NULL,   -- a number of contextd_incarnations that the process took when it opened the store
  expires timestamptz NOT NULL,
  PRIMARY KEY (incarnation, work)
);
