// Package pglog is the event log in PostgreSQL: many processes may write to one store.
//
// A write is one statement. It advances the session's version only from the version that the process read before, and
// stores nothing else unless it does. So its commit decides whether another writer came first. No lock is held while
// this process works, except in a deletion.
//
// The SQL is plain: no extension, no advisory lock. Where a server or pooler lacks LISTEN and NOTIFY, waiters poll.
package pglog
