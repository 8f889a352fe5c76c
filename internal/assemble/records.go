package assemble

import (
	"bytes"
	"context"
	"fmt"

	"github.com/contextd/contextd/internal/artifact"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

// recordKind is the kind of artifact that holds projection records.
const recordKind = projection.ArtifactKind

// keySearch bounds how many records are looked at for an idempotency key.
const keySearch = 256

// putRecord stores the caller's texts, then the record that names them; durable on return.
func (e *Engine) putRecord(ctx context.Context, s *session, r projection.Record) error {
	if err := projection.PutTexts(ctx, e.store, s.id, s.of, r.Projection); err != nil {
		return err
	}
	m, err := r.Stored()
	if err != nil {
		return fmt.Errorf("encode projection record: %w", err)
	}
	return artifact.Put(ctx, e.store, s.id, eventlog.Artifact{Kind: recordKind, Seq: r.AsOf, ID: r.ID, Of: s.of}, m)
}

// search returns the newest record up to asOf that matches, looking at no more
// than limit of them; 0 is no limit.
func (e *Engine) search(ctx context.Context, sessionID string, asOf eventlog.Seq, limit int, match func(projection.Record) bool) (*projection.Record, error) {
	if asOf == 0 {
		return nil, nil
	}
	looked := 0
	for a, err := range e.store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: recordKind, To: asOf, Reverse: true}) {
		if err != nil {
			return nil, err
		}
		r, err := projection.FromStored(a)
		if err != nil {
			return nil, err
		}
		if match(r) {
			return &r, nil
		}
		if looked++; looked == limit {
			break
		}
	}
	return nil, nil
}

// lastRecord is the record whose decisions hold at the end of the log: the newest under
// the fingerprint that is not behind it, and rests on no compaction that was taken back.
func (e *Engine) lastRecord(ctx context.Context, sessionID, fingerprint string, log *reduce.Conversation) (*projection.Record, error) {
	return e.search(ctx, sessionID, log.Head(), 0, func(r projection.Record) bool {
		return r.Fingerprint == fingerprint && !log.Void(r.AsOf)
	})
}

// recordBefore is the newest record of the same stream that was made before r and is not
// behind it; r need not be recorded yet.
func (e *Engine) recordBefore(ctx context.Context, sessionID string, r projection.Record) (*projection.Record, error) {
	past := r.ID == ""
	return e.search(ctx, sessionID, r.AsOf, 0, func(other projection.Record) bool {
		if !past {
			past = other.ID == r.ID
			return false
		}
		return stream(other) == stream(r)
	})
}

// recordByKey is the record of the request's key, wherever in the log it was made.
func (e *Engine) recordByKey(ctx context.Context, s *session, req Request) (projection.Record, bool, error) {
	r, err := e.search(ctx, s.id, max(s.head, 1), keySearch, func(r projection.Record) bool { return r.IdempotencyKey == req.IdempotencyKey })
	if err != nil || r == nil {
		return projection.Record{}, false, err
	}
	if len(r.RequestDigest) > 0 && !bytes.Equal(r.RequestDigest, req.Digest) {
		return *r, false, &KeyConflictError{req.IdempotencyKey, r.ID}
	}
	return *r, true, nil
}

// Projections lists the records of a session, oldest first, behind the one named
// after. next is empty behind the last.
func (e *Engine) Projections(ctx context.Context, sessionID, after string, limit int) (records []projection.Record, next string, err error) {
	var from eventlog.Seq
	if after != "" {
		asOf, ok := asOfOf(after)
		if !ok {
			return nil, "", &eventlog.InvalidError{Field: "page_token", Reason: "is not from an earlier page"}
		}
		from = asOf
	}
	for a, err := range e.store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: recordKind, From: from}) {
		if err != nil {
			return nil, "", err
		}
		if after != "" && a.Seq == from && a.ID <= after {
			continue
		}
		if len(records) == limit {
			return records, records[limit-1].ID, nil
		}
		r, err := projection.FromStored(a)
		if err != nil {
			return nil, "", err
		}
		records = append(records, r)
	}
	return records, "", nil
}

// record returns one record, or *eventlog.NotFoundError.
func (e *Engine) record(ctx context.Context, sessionID, projectionID string) (projection.Record, error) {
	asOf, ok := asOfOf(projectionID)
	if !ok {
		return projection.Record{}, &eventlog.NotFoundError{Kind: "projection", Name: projectionID}
	}
	a, err := e.store.Artifact(ctx, sessionID, recordKind, asOf, projectionID)
	if err != nil {
		return projection.Record{}, err
	}
	return projection.FromStored(a)
}

func seqName(s eventlog.Seq) string { return fmt.Sprintf("%d", s) }
