// Package logcopy copies all sessions of one store into another, of whatever kind each is, and reads
// every event and artifact of both to see that they are equal.
//
// A session of the target has the events, artifacts, labels, settings and times of the source's, and
// a fork is a fork: what it shares with its parent is stored once. Artifacts that a fork shares with
// its parent are stored with each of them. An incarnation is the target's own, and so is the hash
// chain.
//
// A copy may be ended at any time, and repeated: what the target has is compared, what it lacks is
// added, and nothing of it is changed or removed. Sessions that only the target has stay.
//
// A fork whose parent was deleted is made from a session that has the parent's id for as long as that
// takes. LabelTemporary marks it: where a copy is ended meanwhile, the next one removes it.
package logcopy
