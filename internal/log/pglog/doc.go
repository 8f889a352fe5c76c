// Package pglog is the event log in PostgreSQL: many processes may write to one store.
//
// A write is one statement, which decides at its commit whether another writer came first: it moves
// the session's version only from the one that was read before, and all else that it stores hangs
// on that. No lock is held while this process works, but in a deletion.
//
// The SQL is plain: no extension, no advisory lock. What a server lacks of LISTEN and NOTIFY is made
// up for by asking again.
package pglog
