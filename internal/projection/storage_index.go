package projection

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/contextd/contextd/internal/artifact"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// What is asked of a session's records is kept beside them, at the event of the record: the
// kind says what is asked, so that the newest artifact of a kind up to an event is the
// answer as of then. Of the records at one event the newest counts.
const newestID = "newest"

const (
	decisionsVersion = 1
	entryVersion     = 1
)

func decisionsKind(fingerprint string) string { return "decisions/" + fingerprint }

// StreamKind is the kind of the entries of a stream, by Record.Stream.
func StreamKind(stream string) string { return "projection_of_stream/" + stream }

// KeyKind is the kind of the entry of an idempotency key.
func KeyKind(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "projection_of_key/" + hex.EncodeToString(sum[:])
}

// Entries are what the record is found by, to be stored with it.
func (r Record) Entries() ([]eventlog.Artifact, error) {
	decisions, err := artifact.Encode(eventlog.Artifact{Kind: decisionsKind(r.Fingerprint), Seq: r.AsOf, ID: newestID},
		Decisions{r.After, r.ShownAfter}.stored())
	if err != nil {
		return nil, err
	}
	entry, err := artifact.Encode(eventlog.Artifact{Kind: StreamKind(r.Stream()), Seq: r.AsOf, ID: newestID},
		&storagev1.ProjectionEntry{Version: entryVersion, ProjectionId: r.ID})
	if err != nil {
		return nil, err
	}
	out := []eventlog.Artifact{decisions, entry}
	if r.IdempotencyKey != "" {
		entry.Kind = KeyKind(r.IdempotencyKey)
		out = append(out, entry)
	}
	return out, nil
}

// Find returns the id of the newest record under a kind of entry that is not after an event,
// and its event; the id is empty if there is none. to 0 is any event.
func Find(ctx context.Context, store eventlog.Artifacts, sessionID, kind string, to eventlog.Seq) (id string, at eventlog.Seq, err error) {
	a, ok, err := artifact.Newest(ctx, store, sessionID, kind, to)
	if !ok || err != nil {
		return "", 0, err
	}
	m := &storagev1.ProjectionEntry{}
	err = artifact.Decode(a, m, entryVersion)
	return m.GetProjectionId(), a.Seq, err
}

// Decisions are what the next context under a fingerprint starts from.
type Decisions struct {
	Reduction reduce.State
	Shown     State
}

func (d Decisions) stored() *storagev1.Decisions {
	return &storagev1.Decisions{Version: decisionsVersion, Reduction: storeReductionState(d.Reduction), Projection: storeState(d.Shown)}
}

// DecisionsAt returns the decisions that hold under a fingerprint at the head of the log:
// the newest that rest on no compaction that was taken back. They are zero if there are none.
func DecisionsAt(ctx context.Context, store eventlog.Artifacts, sessionID, fingerprint string, log *reduce.Conversation) (Decisions, error) {
	for to := log.Head(); to > 0; {
		a, ok, err := artifact.Newest(ctx, store, sessionID, decisionsKind(fingerprint), to)
		if !ok || err != nil {
			return Decisions{}, err
		}
		since := log.VoidSince(a.Seq)
		if since == 0 {
			return decisionsFromStored(a)
		}
		to = since - 1
	}
	return Decisions{}, nil
}

func decisionsFromStored(a eventlog.Artifact) (Decisions, error) {
	m := &storagev1.Decisions{}
	if err := artifact.Decode(a, m, decisionsVersion); err != nil {
		return Decisions{}, err
	}
	in := &reader{what: fmt.Sprintf("%s %s", a.Kind, a.ID)}
	return Decisions{readReductionState(m.GetReduction()), in.state(m.GetProjection())}, in.err
}
