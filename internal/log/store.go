package log

import (
	"context"
	"iter"
	"time"
)

// Reader reads sessions and their events.
type Reader interface {
	// Session returns the current state of a session; *NotFoundError if there is none.
	Session(ctx context.Context, id string) (Session, error)
	// Read yields the durable events from..to, both included, in order. If to is 0 or after the head, it ends at the
	// head that the log has when the iteration starts. It fetches only about as much as it yields, and holds no
	// resource of the store while the caller works. It stops after the first error; if ctx ends, the next thing it
	// yields is ctx's error. All events are of one incarnation: if that is deleted during the iteration, the
	// iteration may end with *NotFoundError, and if the medium is set back, with *LostError, unless the store has
	// OneWriter.
	Read(ctx context.Context, id string, from, to Seq) iter.Seq2[Event, error]
}

// Log keeps sessions and their events.
type Log interface {
	Reader

	// CreateSession makes an empty session. Of s it uses ID, CreateTime, Labels and Settings, and copies them. The
	// session is durable on return. *ExistsError if the id is taken.
	CreateSession(ctx context.Context, s Session) (Session, error)
	// ListSessions returns up to q.Limit sessions in the order of their ids, including damaged ones.
	ListSessions(ctx context.Context, q SessionQuery) ([]Session, error)
	// Fork makes a session whose first At events are the parent's. They are shared, so that the time does not depend
	// on At. The fork is durable on return. It takes over the parent's settings, and its labels unless r has others.
	// Neither session sees what is appended or put to the other afterwards.
	Fork(ctx context.Context, r ForkRequest) (Session, error)
	// DeleteSession removes the session, its artifacts, and every event that no fork shares. When it returns, this is
	// durable: no method shows them any more, and the id is free. Appends that were admitted before it and not waited
	// for may fail with *NotFoundError, as may reads that have begun.
	//
	// Conditions: of, if not 0, must be the session's incarnation, otherwise *NotFoundError. head, if not nil, must
	// be the head after all batches admitted so far, otherwise *HeadMismatchError. Of a damaged session it deletes
	// what the store can find; if head is given and the session's head cannot be read, *CorruptError.
	DeleteSession(ctx context.Context, id string, of Incarnation, head *Seq) error
	// WaitErased waits until no copy that the store made of a deleted incarnation is on the medium any more; of 0
	// means all that were deleted. Only a store with Erases promises this. *CorruptError if damage next to the data
	// prevents it.
	WaitErased(ctx context.Context, of Incarnation) error

	// Append admits a batch after all batches admitted before it, by the rules of PreparedBatch.Admit. If the session
	// does not exist, it makes it. When Append returns, the events have their seqs, but the batch may not be durable
	// yet, and is not visible before it is: Commit.Wait waits for that. The batches of a session become durable in
	// the order in which they were admitted. After an error of Append nothing was stored.
	Append(ctx context.Context, id string, b Batch) (Commit, error)
	// ChainHead returns the head of the hash chain over the durable events up to seq. A client that keeps it
	// elsewhere can prove later that no event up to seq was changed, dropped or added. A fork shares its parent's
	// chain up to where it forked. The hashes of two stores differ, because each store hashes its own encoding. The
	// result is nil for seq 0, and in a store without the capability Chain. *NotFoundError if there is no such event.
	ChainHead(ctx context.Context, id string, seq Seq) ([]byte, error)
	// WaitPast waits until the durable head is not seq, and returns it. It notices the appends of other processes,
	// too, and a head that is less than before because the medium was set back to an older copy. *NotFoundError if
	// the session does not exist, or is deleted during the wait.
	WaitPast(ctx context.Context, id string, seq Seq) (Seq, error)
}

// Artifacts keeps data that is derived from logs.
type Artifacts interface {
	// PutArtifacts stores copies of artifacts, each in place of one with the same key: all of them, or none if a
	// condition of one (Of, New) does not hold. They are durable on return. The session's head and update time stay
	// the same.
	PutArtifacts(ctx context.Context, id string, all ...Artifact) error
	// Artifact returns one artifact; *NotFoundError if there is none with the key.
	Artifact(ctx context.Context, id, kind string, seq Seq, artifactID string) (Artifact, error)
	// Artifacts yields the artifacts of the query in its order, each once. Artifacts that are put during the
	// iteration may be missing from it. If ctx ends, the next thing it yields is ctx's error.
	Artifacts(ctx context.Context, id string, q ArtifactQuery) iter.Seq2[Artifact, error]
	// ArtifactKinds returns the kinds of the artifacts that the session shows, in byte order.
	ArtifactKinds(ctx context.Context, id string) ([]string, error)
}

// Leases divide the work on sessions among the processes that write to one store. Time is measured by the store's
// clock. A lease avoids double work but does not exclude it: a process that is paused for longer than its lease may
// go on when another has begun the same work.
type Leases interface {
	// Lease takes or renews the lease on a piece of work of a session, for d from now, and reports whether this
	// holder has it. The holder is this opened store, so in practice the process. The result is false while another
	// process has the lease. *NotFoundError if the session does not exist, or if of is not 0 and not its incarnation.
	// The lease ends with the session, and a fork does not inherit it.
	Lease(ctx context.Context, id string, of Incarnation, work string, d time.Duration) (bool, error)
	// Release gives a lease back early. It does nothing if this process does not hold it.
	Release(ctx context.Context, id string, of Incarnation, work string) error
}

// LeaseAlone implements Leases.Lease for a store with one writer: it grants every lease on a session that exists.
func LeaseAlone(ctx context.Context, log Reader, id string, of Incarnation) (bool, error) {
	found, err := log.Session(ctx, id)
	if err == nil && of != 0 && of != found.Incarnation {
		err = NoSession(id)
	}
	return err == nil, err
}

// Store keeps logs and their artifacts. All methods may be called from any goroutine. They return the error types of
// this package, and the error of a context unchanged. The store and its callers share the slices and events that it
// returns: nobody may change them.
//
// What is visible is durable: no method shows an event, a session or an artifact
// that a crash could still take back.
//
// Several processes may write to one store if its Capabilities do not state OneWriter. Such a store
//   - holds no lock while the caller works. It finds out at commit time whether another writer came first, and if so
//     repeats the write itself where it can: the conditions of a batch or an artifact (ExpectedHead, Of, New) say all
//     that it depends on.
//   - may return a *ConflictError from every method that writes, if it gives up. Nothing was stored then, and the
//     caller may make the same call again.
//   - compares what it keeps of a session in memory with what is stored, first of all the head, before it uses it in
//     another call.
//   - takes incarnations from a sequence that all processes share.
type Store interface {
	Log
	Artifacts
	Leases
	// Capabilities returns the same value for the store's whole life.
	Capabilities() Capabilities
	// Healthy returns nil, or the *UnavailableError because of which the store refuses work. A store that failed
	// stays failed.
	Healthy() error
	// Close waits until the admitted batches are durable, and releases all resources.
	Close() error
}

// Capabilities are promises that not every store can make. The suite in logtest skips the tests of those that a store
// does not state.
type Capabilities struct {
	// Chain: ChainHead has a hash for every event.
	Chain bool
	// Erases: when WaitErased returns, what DeleteSession removed is gone from the medium. A store that keeps old
	// versions for its readers cannot promise that: their bytes stay until the last such reader is done.
	Erases bool
	// OneWriter: only the process that opened the store writes to it. So a *ConflictError can only come from an
	// artifact's New, and every lease is granted.
	OneWriter bool
}
