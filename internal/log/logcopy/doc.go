// Package logcopy copies all sessions of one store into another. The stores may be of different kinds. It reads every
// event and artifact of both to verify that they are equal.
//
// A session of the target has the same events, artifacts, labels, settings and times as in the source, and a fork
// remains a fork: the events that it shares with its parent are stored once. Only artifacts are stored again for each
// fork. Incarnations and the hash chain are the target's own.
//
// A copy may be interrupted at any time and repeated. It compares what the target has already, and adds what it does
// not have. It never changes events and removes nothing, but replaces an artifact that has another value in the
// source. It does not change sessions that only the target has.
//
// A fork whose parent was deleted is forked in the target from a temporary session with the parent's id.
// LabelTemporary marks that session: if the copy is interrupted, the next one removes it.
package logcopy
