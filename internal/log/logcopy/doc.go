// Package logcopy copies all sessions of one store into another; the stores may be of different kinds. It reads every
// event and artifact of both to verify that they are equal.
//
// A session of the target has the events, artifacts, labels, settings and times of the source's, and a fork remains a
// fork: what it shares with its parent is stored once. Only artifacts are stored again for each fork. Incarnations
// and the hash chain are the target's own.
//
// A copy may be interrupted at any time and repeated. What the target has already is compared, what it lacks is
// added. Events never change and nothing is removed, but an artifact with another value is replaced by the source's.
// Sessions that only the target has stay as they are.
//
// A fork whose parent was deleted is forked in the target from a temporary session with the parent's id.
// LabelTemporary marks that session: if a copy is interrupted meanwhile, the next one removes it.
package logcopy
