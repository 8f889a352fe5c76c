package disklog

import (
	"context"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
)

// ArtifactKinds returns the kinds of the session's artifacts.
func (s *Store) ArtifactKinds(ctx context.Context, id string) (_ []string, err error) {
	defer inSession(id, &err)
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	sl, found, err := s.find(id)
	if err != nil {
		return nil, err
	}
	defer s.release(sl)
	kinds := map[string]bool{}
	for _, l := range found.links {
		if err := s.kindsOf(ctx, l, kinds); err != nil {
			return nil, err
		}
	}
	if err := found.settled(ctx); err != nil {
		return nil, err
	}
	if err := found.deleted(ctx); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(kinds)), nil
}

// kindsOf adds the kinds of the artifacts that a link shows.
func (s *Store) kindsOf(ctx context.Context, l link, kinds map[string]bool) error {
	prefix := kindPrefix(l.segment, keyArtifact)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return s.fail("artifacts", err)
	}
	defer it.Close()
	for ok := it.First(); ok; {
		if err := ctx.Err(); err != nil {
			return err
		}
		name, parsed := parseArtifactKey(it.Key())
		if !parsed {
			return &eventlog.CorruptError{What: describeKey(it.Key()), Reason: "it is no artifact's key"}
		}
		if !kinds[name.kind] {
			shown, err := s.showsKind(l, name.kind)
			if err != nil {
				return err
			}
			if shown {
				kinds[name.kind] = true
			}
		}
		ok = it.SeekGE(prefixEnd(artifactKindPrefix(l.segment, name.kind)))
	}
	if err := it.Error(); err != nil {
		return s.fail("artifacts", err)
	}
	return nil
}

// showsKind reports whether a link shows an artifact of a kind. The segment may have only artifacts that the link
// does not show, because they were put too late.
func (s *Store) showsKind(l link, kind string) (bool, error) {
	shown := artifactMerge{store: s, links: []link{l}, query: eventlog.ArtifactQuery{Kind: kind}}
	defer shown.close()
	first, err := shown.next()
	return first != nil, err
}
