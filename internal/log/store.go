package log

import (
	"context"
	"iter"
	"slices"
	"time"
)

// Session is a conversation and what is known of its log.
type Session struct {
	ID string
	// Head is the newest durable event; 0 if there is none.
	Head  Seq
	Turns uint32
	// LogBytes is the sum of Size over all events up to Head, shared events of a
	// parent included.
	LogBytes               uint64
	CreateTime, UpdateTime time.Time
	Labels                 map[string]string
	// Settings is opaque to the store: the session's policy and budget as the
	// layer above encodes them.
	Settings []byte
	// ChainHead is what Store.ChainHead returns for Head.
	ChainHead []byte
	// ParentID and ForkSeq say where a fork began; empty and 0 otherwise. The
	// parent may have been deleted since.
	ParentID string
	ForkSeq  Seq
	// Incarnation tells the session from others that had its id before, or will have
	// it later. The store gives it.
	Incarnation Incarnation
	// Damaged says that the store cannot read the session whole. ListSessions fills
	// in what is known; everything else answers with a *CorruptError.
	Damaged bool
}

// Incarnation names one life of a session id, from the session's creation to its
// deletion. No two sessions have the same while a store is open; 0 is no session's.
type Incarnation uint64

// SessionQuery selects a page of sessions, ordered by id.
type SessionQuery struct {
	// After is the id behind which the page starts; empty for the first.
	After string
	// Limit is the greatest number of sessions to return; 0 means no limit.
	Limit int
	// Labels must all be there with these values.
	Labels map[string]string
}

// ForkRequest makes a session that shares its parent's events up to At.
type ForkRequest struct {
	ParentID string
	// At must not be after the parent's durable head; 0 shares nothing.
	At    Seq
	NewID string
	Time  time.Time
	// Labels are those of the new session; nil for the parent's. The store copies them.
	Labels map[string]string
}

// Batch is appended whole or not at all.
type Batch struct {
	// Events must have an ID and a Body; Seq and Turn are ignored. The store
	// keeps references to what the events hold: the caller must not change it
	// afterwards.
	Events []Event
	// ExpectedHead, if set, must be the log's head before the batch. A batch of
	// which every event is a duplicate succeeds whatever the head is, so that a
	// writer can repeat a call whose answer it lost.
	ExpectedHead *Seq
	// Of, if set, is the incarnation that the batch is meant for: *NotFoundError if
	// the id has none, or another by now. 0 is a session that does not exist yet:
	// *ExistsError if there is one, which can be seen then.
	Of *Incarnation
	// Time becomes the session's update time, and its create time if this batch
	// makes it.
	Time time.Time
}

// Receipt says where an event of a batch stands in the log.
type Receipt struct {
	Seq     Seq
	EventID string
	// Duplicate is set when the log held the same event already; Seq is then the
	// place of the first one.
	Duplicate bool
	Tokens    TokenCounts
}

// Commit is an append that has its place in the log but may not be durable yet.
type Commit interface {
	// Wait returns once the batch is durable, with one receipt per event in the
	// batch's order. After an error of Wait the batch is there whole or not at
	// all. Wait may be called once, from any goroutine. A cancelled context ends
	// the wait, not the append.
	Wait(ctx context.Context) ([]Receipt, error)
}

// Artifact is data derived from a log and kept beside it, so that deriving never
// moves the head.
type Artifact struct {
	// Kind, Seq and ID together are its key; artifacts of one kind are ordered by
	// Seq, then ID in byte order.
	Kind string
	// Seq is the last event it was derived from. A fork shares its parent's
	// artifacts up to the fork's Seq as they stood when it was made.
	Seq   Seq
	ID    string
	Value []byte
	// Of, if not 0, is the incarnation that the artifact was derived from: putting it
	// is a *NotFoundError if the id has none, or another by now. It is not kept.
	Of Incarnation
}

// AllOf reports whether each artifact may be kept beside the incarnation.
func AllOf(all []Artifact, i Incarnation) bool {
	return !slices.ContainsFunc(all, func(a Artifact) bool { return a.Of != 0 && a.Of != i })
}

// ArtifactQuery selects artifacts of one kind with From <= Seq <= To.
type ArtifactQuery struct {
	Kind     string
	From, To Seq // To 0 means no bound
	// Newest first instead of oldest first.
	Reverse bool
}

// Store keeps logs. All methods may be called from any goroutine. Errors are the
// types of this package; a context's error is returned as it is. Slices and
// events that a store returns are shared and must not be changed.
//
// What is visible is durable: no method shows an event, a session or an artifact
// that a crash could still take back.
type Store interface {
	// CreateSession makes an empty session from ID, CreateTime, Labels and
	// Settings, which it copies; durable on return. *ExistsError if the id is
	// taken.
	CreateSession(ctx context.Context, s Session) (Session, error)
	// Session returns a session as it stands, or *NotFoundError.
	Session(ctx context.Context, id string) (Session, error)
	// ListSessions returns up to Limit sessions in the order of their ids.
	ListSessions(ctx context.Context, q SessionQuery) ([]Session, error)
	// Fork makes a session that reads the parent's first At events as its own, in
	// time that does not depend on how many they are; durable on return. It takes
	// over the settings, and the labels unless it is given its own. The two diverge from there and neither sees the
	// other's later events or artifacts.
	Fork(ctx context.Context, r ForkRequest) (Session, error)
	// DeleteSession removes the session, its artifacts and every event that no
	// fork shares; what is removed is gone from the medium on return, in every
	// copy the store made of it. Appends that were admitted before and not waited
	// for may fail with *NotFoundError, and so may reads that have begun. The id is
	// free again before all that is done, and stays so whatever comes of it. of, if not
	// 0, is the incarnation that is meant: *NotFoundError if the id has another.
	DeleteSession(ctx context.Context, id string, of Incarnation) error

	// Append admits a batch behind all batches admitted before it, by the rules
	// of PreparedBatch.Admit, and makes the session if there is none. The batch
	// has its seqs when Append returns and is durable when Commit.Wait returns.
	// Batches of one session become durable in their order. After an error of
	// Append nothing was stored.
	Append(ctx context.Context, id string, b Batch) (Commit, error)
	// Read yields the durable events from..to, both included, in order; to 0, or
	// behind the head, means the head as it is when the iteration starts. It
	// touches only what it yields, holds nothing of the store while the caller
	// works, and stops after the first error: that of ctx comes at the next event.
	Read(ctx context.Context, id string, from, to Seq) iter.Seq2[Event, error]
	// ChainHead returns the hash over the durable events up to seq, each chained to
	// the one before, as the store has them: whoever kept it elsewhere can tell later
	// that none of them was changed, dropped or added. A fork has its parent's as far
	// as it shares the log and goes on from it. What is hashed is a store's own
	// encoding, so stores do not agree on it, and one that has no encoding has no
	// chain: nil, as for seq 0. *NotFoundError where there is no such event.
	ChainHead(ctx context.Context, id string, seq Seq) ([]byte, error)
	// WaitPast returns the durable head as soon as it is greater than seq.
	// *NotFoundError if the session does not exist or goes away meanwhile.
	WaitPast(ctx context.Context, id string, seq Seq) (Seq, error)

	// PutArtifacts stores copies of artifacts, each replacing the one with the same
	// key, all of them or none; durable on return. It never moves the session's head or
	// update time.
	PutArtifacts(ctx context.Context, id string, all ...Artifact) error
	// Artifact returns one artifact or *NotFoundError.
	Artifact(ctx context.Context, id, kind string, seq Seq, artifactID string) (Artifact, error)
	// Artifacts yields the artifacts of the query, each once. Of those that are
	// put while the iteration runs, some may be seen. Where ctx ends, its error comes
	// next.
	Artifacts(ctx context.Context, id string, q ArtifactQuery) iter.Seq2[Artifact, error]

	// Healthy returns nil, or the *UnavailableError that made the store refuse
	// work. A store that failed stays failed.
	Healthy() error
	// Close waits for admitted batches and releases everything.
	Close() error
}
