// Package pglog is an eventlog.Store in PostgreSQL, to which several processes may write.
//
// A write is one statement. It stores something only if the session still has the version that the process read
// before, and then changes the version. So the commit decides whether another writer came first. Only a deletion
// holds locks while this process works.
//
// The SQL needs no extensions and no advisory locks. If a server or pooler does not have LISTEN and NOTIFY, waiters
// poll.
package pglog
