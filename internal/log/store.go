package log

import (
	"context"
	"iter"
	"time"
)

// Reader reads sessions and their events.
type Reader interface {
	// Session returns a session as it is, or *NotFoundError.
	Session(ctx context.Context, id string) (Session, error)
	// Read yields the durable events from..to, both included, in order; to 0, or
	// after the head, means the head as it is when the iteration starts. It
	// touches only what it yields, holds nothing of the store while the caller
	// works, and stops after the first error: that of ctx comes at the next event.
	// All that it yields is of one session: where that is deleted meanwhile, it may end with
	// *NotFoundError, and where the medium is set back under a store without OneWriter, with *LostError.
	Read(ctx context.Context, id string, from, to Seq) iter.Seq2[Event, error]
}

// Log keeps sessions and their events.
type Log interface {
	Reader

	// CreateSession makes an empty session from ID, CreateTime, Labels and
	// Settings, which it copies; durable on return. *ExistsError if the id is
	// taken.
	CreateSession(ctx context.Context, s Session) (Session, error)
	// ListSessions returns up to Limit sessions in the order of their ids, damaged ones
	// among them.
	ListSessions(ctx context.Context, q SessionQuery) ([]Session, error)
	// Fork makes a session that reads the parent's first At events as its own, in
	// time that does not depend on how many they are; durable on return. It takes
	// over the settings, and the labels unless it is given its own. The two diverge from
	// there and neither sees the other's later events or artifacts.
	Fork(ctx context.Context, r ForkRequest) (Session, error)
	// DeleteSession removes the session, its artifacts and every event that no
	// fork shares: no method shows them any more, durably, and the id is free again. Appends that were
	// admitted before and not waited for may fail with *NotFoundError, and so may reads
	// that have begun. of, if not 0, is the incarnation that is meant: *NotFoundError if the id
	// has another. head, if not nil, must be the log's head, of all batches that were admitted
	// before: *HeadMismatchError if it is not. A session that is damaged is deleted as far as it
	// is known; with a head, *CorruptError where that is not known.
	DeleteSession(ctx context.Context, id string, of Incarnation, head *Seq) error
	// WaitErased waits until an incarnation that was deleted, or with 0 each of them, is gone from the
	// medium, in every copy that a store with Erases made. *CorruptError if that cannot be,
	// because of damage next to it.
	WaitErased(ctx context.Context, of Incarnation) error

	// Append admits a batch after all batches admitted before it, by the rules
	// of PreparedBatch.Admit, and makes the session if there is none. The batch
	// has its seqs when Append returns and is durable when Commit.Wait returns.
	// Batches of one session become durable in their order. After an error of
	// Append nothing was stored.
	Append(ctx context.Context, id string, b Batch) (Commit, error)
	// ChainHead returns the head of the hash chain over the durable events up to seq. Whoever keeps it
	// elsewhere can prove later that no event up to there was changed, dropped or added. A fork shares its
	// parent's chain up to where it forked. Stores do not agree on the hash, because each hashes its own
	// encoding. It is nil for seq 0, and for a store without the capability Chain. *NotFoundError where there
	// is no such event.
	ChainHead(ctx context.Context, id string, seq Seq) ([]byte, error)
	// WaitPast returns the durable head soon after it is not seq: whoever appended, or set the medium
	// back under a store without OneWriter. *NotFoundError if the session does not exist or goes away
	// meanwhile.
	WaitPast(ctx context.Context, id string, seq Seq) (Seq, error)
}

// Artifacts keeps data that is derived from the logs.
type Artifacts interface {
	// PutArtifacts stores copies of artifacts, each replacing the one with the same
	// key, all of them or none: where a condition of one does not hold, nothing is stored.
	// They are durable on return. It never moves the session's head or update time.
	PutArtifacts(ctx context.Context, id string, all ...Artifact) error
	// Artifact returns one artifact or *NotFoundError.
	Artifact(ctx context.Context, id, kind string, seq Seq, artifactID string) (Artifact, error)
	// Artifacts yields the artifacts of the query, each once. It may or may not yield artifacts that are put
	// while it runs. If ctx ends, the next thing it yields is ctx's error.
	Artifacts(ctx context.Context, id string, q ArtifactQuery) iter.Seq2[Artifact, error]
	// ArtifactKinds returns the kinds of the artifacts that the session shows, in byte order.
	ArtifactKinds(ctx context.Context, id string) ([]string, error)
}

// Leases divide work on sessions among the processes that write to one store, by the clock of the store. They
// save double work and give no mutual exclusion: a process that is paused for longer than its lease may go on
// although another has begun the same work.
type Leases interface {
	// Lease takes or renews the lease on a piece of work of a session, for d from now, and reports whether it
	// is held. The holder is this opened store, so in practice the process. It is false while another process
	// holds the lease. *NotFoundError if the session does not exist, or of is not 0 and not its incarnation.
	// The lease ends with the session, and a fork does not inherit it.
	Lease(ctx context.Context, id string, of Incarnation, work string, d time.Duration) (bool, error)
	// Release gives a lease back early. It does nothing if this process does not hold it.
	Release(ctx context.Context, id string, of Incarnation, work string) error
}

// LeaseAlone implements Leases.Lease for a store with one writer: whoever asks gets the lease.
func LeaseAlone(ctx context.Context, log Reader, id string, of Incarnation) (bool, error) {
	found, err := log.Session(ctx, id)
	if err == nil && of != 0 && of != found.Incarnation {
		err = &NotFoundError{Kind: "session", Name: id}
	}
	return err == nil, err
}

// Store keeps logs and their artifacts. All methods may be called from any goroutine.
// Errors are the types of this package; a context's error is returned as it is. Slices and
// events that a store returns are shared and must not be changed.
//
// What is visible is durable: no method shows an event, a session or an artifact
// that a crash could still take back.
//
// Several processes may write to one store if its Capabilities do not state OneWriter. Such
// a store decides between them when it commits, not by a lock that it holds meanwhile. It
// repeats by itself what it can: all that a batch or an artifact rests on is in its
// conditions (ExpectedHead, Of, New). Where it gives up, every method that writes may return
// a *ConflictError; nothing was stored, and the caller may make the same call again. It keeps
// nothing of a session in memory from one call to the next without comparing it with what is
// stored, its head first of all, and takes incarnations from a sequence that all processes
// share.
type Store interface {
	Log
	Artifacts
	Leases
	// Capabilities are the same for the store's whole life.
	Capabilities() Capabilities
	// Healthy returns nil, or the *UnavailableError that made the store refuse
	// work. A store that failed stays failed.
	Healthy() error
	// Close waits for admitted batches and releases everything.
	Close() error
}

// Capabilities are what not every store can promise. The suite in logtest skips the tests of a capability
// that a store does not state.
type Capabilities struct {
	// Chain: ChainHead has a hash for every event.
	Chain bool
	// Erases: once WaitErased returns, what DeleteSession removed is gone from the medium. A store that keeps
	// old versions for its readers cannot promise that: there the bytes go when the last such reader is done.
	Erases bool
	// OneWriter: only the process that opened the store writes to it. So the one cause of a *ConflictError is
	// an artifact's New, and every lease that is asked for is granted.
	OneWriter bool
}
