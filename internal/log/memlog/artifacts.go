package memlog

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// PutArtifact stores a copy of the artifact.
func (s *Store) PutArtifact(ctx context.Context, id string, a eventlog.Artifact) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	if err := a.Validate(); err != nil {
		return err
	}
	if a.Of != 0 && a.Of != found.info.Incarnation {
		return &eventlog.NotFoundError{Kind: "session", Name: id}
	}
	own := found.own()
	key := artifactKey{a.Kind, a.Seq, a.ID}
	own.puts++
	own.artifacts[key] = append(own.artifacts[key], version{put: own.puts, value: bytes.Clone(a.Value)})
	own.pruneArtifact(key)
	return nil
}

// Artifact returns one artifact.
func (s *Store) Artifact(ctx context.Context, id, kind string, seq eventlog.Seq, artifactID string) (eventlog.Artifact, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, err := s.find(ctx, id)
	if err != nil {
		return eventlog.Artifact{}, err
	}
	for _, l := range slices.Backward(found.chain) {
		if v, ok := l.artifact(artifactKey{kind, seq, artifactID}); ok {
			return eventlog.Artifact{Kind: kind, Seq: seq, ID: artifactID, Value: v.value}, nil
		}
	}
	return eventlog.Artifact{}, &eventlog.NotFoundError{Kind: "artifact", Name: fmt.Sprintf("%s/%d/%s", kind, seq, artifactID)}
}

// Artifacts yields the artifacts of the query.
func (s *Store) Artifacts(ctx context.Context, id string, q eventlog.ArtifactQuery) iter.Seq2[eventlog.Artifact, error] {
	return func(yield func(eventlog.Artifact, error) bool) {
		all, err := s.artifacts(ctx, id, q)
		if err != nil {
			yield(eventlog.Artifact{}, err)
			return
		}
		for _, a := range all {
			if err := ctx.Err(); err != nil {
				yield(eventlog.Artifact{}, err)
				return
			}
			if !yield(a, nil) {
				return
			}
		}
	}
}

func (s *Store) artifacts(ctx context.Context, id string, q eventlog.ArtifactQuery) ([]eventlog.Artifact, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	seen := map[artifactKey]bool{}
	var all []eventlog.Artifact
	for _, l := range slices.Backward(found.chain) {
		for key := range l.segment.artifacts {
			if key.kind != q.Kind || key.seq < q.From || (q.To != 0 && key.seq > q.To) || seen[key] {
				continue
			}
			if v, ok := l.artifact(key); ok {
				seen[key] = true
				all = append(all, eventlog.Artifact{Kind: key.kind, Seq: key.seq, ID: key.id, Value: v.value})
			}
		}
	}
	slices.SortFunc(all, func(a, b eventlog.Artifact) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID))
	})
	if q.Reverse {
		slices.Reverse(all)
	}
	return all, nil
}
