package records

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/contextd/contextd/internal/artifact"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// Index entries are answers to frequent questions about records, stored as artifacts at the events of the records.
// The kind names the question, so the newest artifact of a kind up to an event is the answer for a log that ends
// there. A newer record at the same event overwrites the entry, which always has the id newestID.
const newestID = "newest"

const (
	decisionsVersion = 1
	entryVersion     = 1
)

func decisionsKind(fingerprint string) string { return "decisions/" + fingerprint }

// streamKind returns the kind of the entries of a stream, by Projection.Stream.
func streamKind(stream string) string { return "projection_of_stream/" + stream }

// entries returns the record's index entries, to be stored with it.
func (r Projection) entries() ([]eventlog.Artifact, error) {
	decisions, err := artifact.Encode(eventlog.Artifact{Kind: decisionsKind(r.Fingerprint), Seq: r.AsOf, ID: newestID},
		Decisions{r.After, r.ShownAfter}.stored())
	if err != nil {
		return nil, err
	}
	entry, err := artifact.Encode(eventlog.Artifact{Kind: streamKind(r.Stream()), Seq: r.AsOf, ID: newestID},
		&storagev1.ProjectionEntry{Version: entryVersion, ProjectionId: r.ID})
	if err != nil {
		return nil, err
	}
	out := []eventlog.Artifact{decisions, entry}
	if r.IdempotencyKey != "" {
		entry.Kind = keyKind(KeyedProjection, r.IdempotencyKey)
		out = append(out, entry)
	}
	return out, nil
}

// ByKey returns the id of the record of an idempotency key, at whatever event it was made; empty if there
// is none.
func ByKey(ctx context.Context, store eventlog.Artifacts, sessionID, key string) (string, error) {
	return find(ctx, store, sessionID, keyKind(KeyedProjection, key), 0)
}

// InStream returns the id of the newest record of a stream (Projection.Stream) up to an event; empty if
// there is none.
func InStream(ctx context.Context, store eventlog.Artifacts, sessionID, stream string, to eventlog.Seq) (string, error) {
	return find(ctx, store, sessionID, streamKind(stream), to)
}

func find(ctx context.Context, store eventlog.Artifacts, sessionID, kind string, to eventlog.Seq) (id string, err error) {
	a, ok, err := artifact.Newest(ctx, store, sessionID, kind, to)
	if !ok || err != nil {
		return "", err
	}
	m := &storagev1.ProjectionEntry{}
	err = artifact.Decode(a, m, entryVersion)
	return m.GetProjectionId(), err
}

// Decisions has the states from which the next context under a fingerprint starts.
type Decisions struct {
	Reduction reduce.State
	Shown     projection.State
}

func (d Decisions) stored() *storagev1.Decisions {
	return &storagev1.Decisions{Version: decisionsVersion, Reduction: storeReductionState(d.Reduction), Projection: storeState(d.Shown)}
}

// DecisionsAt returns the newest decisions under a fingerprint up to the head of the log, leaving out those
// made while a compaction was in force that was undone later. They are zero if there are none.
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
	in := &reader{what: a.Name()}
	return Decisions{in.reduction(m.GetReduction()), in.state(m.GetProjection())}, in.err
}

// Index completes the index entries of records and calls, which early builds did not write. of is the
// incarnation of the session that is meant.
func Index(ctx context.Context, store eventlog.Artifacts, sessionID string, of eventlog.Incarnation) error {
	for _, kind := range []string{projectionKind, callKind} {
		if err := indexKind(ctx, store, sessionID, of, kind); err != nil {
			return err
		}
	}
	return nil
}

// indexKind writes the entries of all artifacts of a kind, if the newest artifact has none. It goes from
// old to new, so an interrupted run leaves the newest without entries and is repeated.
func indexKind(ctx context.Context, store eventlog.Artifacts, sessionID string, of eventlog.Incarnation, kind string) error {
	newest, ok, err := artifact.Newest(ctx, store, sessionID, kind, 0)
	if !ok || err != nil {
		return err
	}
	entries, err := entriesOf(newest)
	if err != nil {
		return err
	}
	last := entries[len(entries)-1]
	found, err := store.Artifact(ctx, sessionID, last.Kind, last.Seq, last.ID)
	if err != nil && !eventlog.IsMissing(err, "artifact") || bytes.Equal(found.Value, last.Value) {
		return err
	}
	type key struct {
		kind string
		seq  eventlog.Seq
	}
	const atOnce = 256
	batch := make(map[key]eventlog.Artifact, atOnce)
	put := func() error {
		err := store.PutArtifacts(ctx, sessionID, slices.Collect(maps.Values(batch))...)
		clear(batch)
		return err
	}
	for a, err := range store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: kind}) {
		if err != nil {
			return err
		}
		if entries, err = entriesOf(a); err != nil {
			return err
		}
		for _, entry := range entries {
			entry.Of = of
			batch[key{entry.Kind, entry.Seq}] = entry
		}
		if len(batch) >= atOnce {
			if err := put(); err != nil {
				return err
			}
		}
	}
	return put()
}

// entriesOf returns the index entries of a stored record or call.
func entriesOf(a eventlog.Artifact) ([]eventlog.Artifact, error) {
	if a.Kind == callKind {
		c, err := decodeCall("", a)
		return c.entries(a), err
	}
	r, err := projectionFrom(a)
	if err != nil {
		return nil, err
	}
	return r.entries()
}
