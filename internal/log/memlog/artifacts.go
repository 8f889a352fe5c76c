package memlog

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// PutArtifacts stores copies of the artifacts.
func (s *Store) PutArtifacts(ctx context.Context, id string, all ...eventlog.Artifact) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	if err := eventlog.ValidateArtifacts(all); err != nil {
		return err
	}
	if err := found.mayPut(id, all); err != nil {
		return err
	}
	found.put(all)
	return nil
}

// mayPut returns the error of a condition (Of, New) that does not hold. s is nil if the session does not exist yet.
func (s *session) mayPut(id string, all []eventlog.Artifact) error {
	var of eventlog.Incarnation
	if s != nil {
		of = s.info.Incarnation
	}
	if !eventlog.AllOf(all, of) {
		return eventlog.NoSession(id)
	}
	for _, a := range all {
		key := artifactKey{a.Kind, a.Seq, a.ID}
		if s == nil || !a.New {
			continue
		}
		if _, taken := s.artifact(key); taken {
			return &eventlog.ConflictError{Session: id, What: "artifact " + key.String()}
		}
	}
	return nil
}

func (s *session) put(all []eventlog.Artifact) {
	own := s.own()
	for _, a := range all {
		key := artifactKey{a.Kind, a.Seq, a.ID}
		s.artifactBytes -= own.size(key)
		own.put(key, bytes.Clone(a.Value))
		s.artifactBytes += own.size(key)
	}
}

// Artifact returns one artifact.
func (s *Store) Artifact(ctx context.Context, id, kind string, seq eventlog.Seq, artifactID string) (eventlog.Artifact, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, err := s.find(ctx, id)
	if err != nil {
		return eventlog.Artifact{}, err
	}
	key := artifactKey{kind, seq, artifactID}
	v, ok := found.artifact(key)
	if !ok {
		return eventlog.Artifact{}, &eventlog.NotFoundError{Kind: "artifact", Name: key.String()}
	}
	return eventlog.Artifact{Kind: kind, Seq: seq, ID: artifactID, Value: v.value}, nil
}

func (k artifactKey) String() string { return fmt.Sprintf("%s/%d/%s", k.kind, k.seq, k.id) }

// artifact returns the version of an artifact that the session shows: that of the newest link with the artifact.
func (s *session) artifact(key artifactKey) (version, bool) {
	for _, l := range slices.Backward(s.chain) {
		if v, ok := l.artifact(key); ok {
			return v, true
		}
	}
	return version{}, false
}

// Artifacts yields the artifacts of the query.
func (s *Store) Artifacts(ctx context.Context, id string, q eventlog.ArtifactQuery) iter.Seq2[eventlog.Artifact, error] {
	return func(yield func(eventlog.Artifact, error) bool) {
		var in *session
		for {
			next, err := s.nextArtifact(ctx, id, &in, q)
			if err != nil {
				yield(eventlog.Artifact{}, err)
				return
			}
			if next == nil || !yield(*next, nil) {
				return
			}
			q.After = next
		}
	}
}

// nextArtifact returns the first artifact of the query; nil if there is none. The first call sets in to the session;
// later calls fail if that was deleted meanwhile.
func (s *Store) nextArtifact(ctx context.Context, id string, in **session, q eventlog.ArtifactQuery) (*eventlog.Artifact, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if *in == nil {
		*in = found
	}
	if *in != found {
		return nil, eventlog.NoSession(id)
	}
	var best *artifactKey
	var value []byte
	for _, l := range slices.Backward(found.chain) { // newest link first, whose version counts
		key, v := l.nextArtifact(q)
		if key != nil && (best == nil || (key.compare(*best) < 0) != q.Reverse && *key != *best) {
			best, value = key, v.value
		}
	}
	if best == nil {
		return nil, nil
	}
	return &eventlog.Artifact{Kind: best.kind, Seq: best.seq, ID: best.id, Value: value}, nil
}

// ArtifactKinds returns the kinds of the session's artifacts.
func (s *Store) ArtifactKinds(ctx context.Context, id string) ([]string, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	kinds := map[string]bool{}
	for _, l := range found.chain {
		for kind := range l.segment.order {
			if key, _ := l.nextArtifact(eventlog.ArtifactQuery{Kind: kind}); key != nil {
				kinds[kind] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(kinds)), nil
}
