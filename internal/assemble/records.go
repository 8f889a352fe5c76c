package assemble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/contextd/contextd/internal/artifact"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
)

// recordKind is the kind of artifact that holds projection records.
const recordKind = projection.ArtifactKind

// putRecord stores the caller's texts, then the record with what it is found by; durable on
// return.
func (e *Engine) putRecord(ctx context.Context, s *session, r projection.Record) error {
	if err := projection.PutTexts(ctx, e.store, s.id, s.of, r.Projection); err != nil {
		return err
	}
	m, err := r.Stored()
	if err != nil {
		return fmt.Errorf("encode projection record: %w", err)
	}
	record, err := artifact.Encode(eventlog.Artifact{Kind: recordKind, Seq: r.AsOf, ID: r.ID, Of: s.of, New: true}, m)
	if err != nil {
		return err
	}
	entries, err := r.Entries()
	if err != nil {
		return err
	}
	return e.store.PutArtifacts(ctx, s.id, append(entries, record)...)
}

// records yields the records of a session that are not after asOf, newest first; none
// where that is 0.
func (e *Engine) records(ctx context.Context, sessionID string, asOf eventlog.Seq) iter.Seq2[projection.Record, error] {
	return func(yield func(projection.Record, error) bool) {
		if asOf == 0 {
			return
		}
		for a, err := range e.store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: recordKind, To: asOf, Reverse: true}) {
			var r projection.Record
			if err == nil {
				r, err = projection.FromStored(a)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// previous names the record that one is compared with: where it is new, the newest of its
// stream that is not after it.
func (e *Engine) previous(ctx context.Context, s *session, r projection.Record) (string, error) {
	if r.ID != "" || r.AsOf == 0 { // nothing was shown at 0
		return r.Previous, nil
	}
	if last, ok := s.last.get(r.Stream()); ok && last.record.AsOf <= r.AsOf {
		return last.record.ID, nil
	}
	id, _, err := projection.Find(ctx, e.store, s.id, projection.StreamKind(r.Stream()), r.AsOf)
	return id, err
}

// recordByKey is the record of the request's key, wherever in the log it was made.
func (e *Engine) recordByKey(ctx context.Context, s *session, req Request) (r projection.Record, ok bool, err error) {
	id, _, err := projection.Find(ctx, e.store, s.id, projection.KeyKind(req.IdempotencyKey), 0)
	if id == "" || err != nil {
		return r, false, err
	}
	if r, err = e.record(ctx, s.id, id); err != nil {
		return r, false, err
	}
	if len(r.RequestDigest) > 0 && !bytes.Equal(r.RequestDigest, req.Digest) {
		return r, false, &KeyConflictError{req.IdempotencyKey, r.ID}
	}
	return r, true, nil
}

// index stores what records and calls are found by, unless that is done: builds before it
// was kept recorded without. It need be asked once for what is held of a session.
func (e *Engine) index(ctx context.Context, s *session) error {
	if s.indexed {
		return nil
	}
	for _, kind := range []string{recordKind, callKind} {
		if err := e.indexKind(ctx, s, kind); err != nil {
			return err
		}
	}
	s.indexed = true
	return nil
}

// indexKind stores the entries of all artifacts of a kind where the newest has none. The
// oldest come first: until all are there, the newest has none.
func (e *Engine) indexKind(ctx context.Context, s *session, kind string) error {
	newest, ok, err := artifact.Newest(ctx, e.store, s.id, kind, 0)
	if !ok || err != nil {
		return err
	}
	entries, err := entriesOf(newest)
	if err != nil {
		return err
	}
	last := entries[len(entries)-1]
	found, err := e.store.Artifact(ctx, s.id, last.Kind, last.Seq, last.ID)
	if missing, ok := errors.AsType[*eventlog.NotFoundError](err); err != nil && (!ok || missing.Kind != "artifact") || bytes.Equal(found.Value, last.Value) {
		return err
	}
	type key struct {
		kind string
		seq  eventlog.Seq
	}
	const atOnce = 256
	batch := make(map[key]eventlog.Artifact, atOnce)
	put := func() error {
		err := e.store.PutArtifacts(ctx, s.id, slices.Collect(maps.Values(batch))...)
		clear(batch)
		return err
	}
	for a, err := range e.store.Artifacts(ctx, s.id, eventlog.ArtifactQuery{Kind: kind}) {
		if err != nil {
			return err
		}
		if entries, err = entriesOf(a); err != nil {
			return err
		}
		for _, entry := range entries {
			entry.Of = s.of
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

// entriesOf are what a record or a call is found by.
func entriesOf(a eventlog.Artifact) ([]eventlog.Artifact, error) {
	if a.Kind == callKind {
		c, err := decodeCall("", a)
		return c.entries(a), err
	}
	r, err := projection.FromStored(a)
	if err != nil {
		return nil, err
	}
	return r.Entries()
}

// Projections lists the records of a session, oldest first, after the one named
// after. next is empty after the last.
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

// Newest names the newest recorded projection of a session: of those with the
// greatest as-of, the one that was recorded last. *eventlog.NotFoundError where none
// was recorded.
func (e *Engine) Newest(ctx context.Context, sessionID string) (string, error) {
	id, err := e.newestProjection(ctx, sessionID)
	if id == "" && err == nil {
		err = &eventlog.NotFoundError{Kind: "projection", Name: "of " + sessionID}
	}
	return id, err
}
