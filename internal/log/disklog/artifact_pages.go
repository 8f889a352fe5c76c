package disklog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Artifacts yields the artifacts of the query.
func (s *Store) Artifacts(ctx context.Context, id string, q eventlog.ArtifactQuery) iter.Seq2[eventlog.Artifact, error] {
	return func(yield func(eventlog.Artifact, error) bool) {
		of := eventlog.Incarnation(0)
		for size := firstPage; ; size = min(2*size, lastPage) {
			page, more, err := s.artifactPage(ctx, id, &of, q, size)
			for _, a := range page {
				if err := ctx.Err(); err != nil {
					yield(eventlog.Artifact{}, err)
					return
				}
				if !yield(a, nil) {
					return
				}
			}
			if err != nil {
				yield(eventlog.Artifact{}, err)
				return
			}
			if !more {
				return
			}
			q.After = &page[len(page)-1]
		}
	}
}

// artifactPage returns up to size artifacts of the query, and whether there may be more.
func (s *Store) artifactPage(ctx context.Context, id string, of *eventlog.Incarnation, q eventlog.ArtifactQuery, size int) (page []eventlog.Artifact, more bool, err error) {
	defer inSession(id, &err)
	if err := s.enter(ctx); err != nil {
		return nil, false, err
	}
	defer s.leave()
	sl, found, err := s.findAgain(id, of)
	if err != nil {
		return nil, false, err
	}
	defer s.release(sl)
	defer s.pageTurn()()
	sources := make([]*artifactSource, 0, len(found.links))
	defer func() {
		for _, src := range sources {
			src.close()
		}
	}()
	for _, l := range found.links {
		src, err := s.openArtifacts(l, q)
		if err != nil {
			return nil, false, err
		}
		if src != nil {
			sources = append(sources, src)
		}
	}
	if err := found.settled(ctx); err != nil {
		return nil, false, err
	}
	more = true
	for read := 0; more && len(page) < size && read < pageBytes; {
		next, err := nextArtifact(sources, q.Reverse)
		if err != nil {
			return page, false, err
		}
		if more = next != nil; !more {
			break
		}
		page = append(page, *next)
		read += len(next.Value)
	}
	if err := found.deleted(ctx); err != nil {
		return nil, false, err
	}
	return page, more, nil
}

// nextArtifact takes the first artifact of the sources, which go from old to new
// links: a newer link's version hides the older ones.
func nextArtifact(sources []*artifactSource, reverse bool) (*eventlog.Artifact, error) {
	var first *eventlog.Artifact
	for _, src := range sources {
		a, err := src.peek()
		if err != nil {
			return nil, err
		}
		if a != nil && (first == nil || orderOf(a, first, reverse) <= 0) {
			first = a
		}
	}
	for _, src := range sources {
		if src.next != nil && orderOf(src.next, first, reverse) == 0 {
			src.next = nil
		}
	}
	return first, nil
}

func orderOf(a, b *eventlog.Artifact, reverse bool) int {
	order := cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID))
	if reverse {
		return -order
	}
	return order
}

// artifactSource goes through the artifacts that one link shows.
type artifactSource struct {
	store   *Store
	it      *pebble.Iterator
	puts    uint64
	reverse bool
	next    *eventlog.Artifact // read but not taken
	err     error
}

// openArtifacts returns nil if the link shows none.
func (s *Store) openArtifacts(l link, q eventlog.ArtifactQuery) (*artifactSource, error) {
	to := l.upTo
	if q.To != 0 {
		to = min(to, q.To)
	}
	if q.From > to {
		return nil, nil
	}
	prefix := artifactKindPrefix(l.segment, q.Kind)
	lower, upper := binary.BigEndian.AppendUint64(prefix[:len(prefix):len(prefix)], uint64(q.From)), prefixEnd(prefix)
	if to < unbounded {
		upper = binary.BigEndian.AppendUint64(prefix[:len(prefix):len(prefix)], uint64(to)+1)
	}
	if after := q.After; after != nil {
		versions := artifactPrefix(l.segment, q.Kind, after.Seq, after.ID)
		if q.Reverse {
			upper = slices.MinFunc([][]byte{upper, versions}, bytes.Compare)
		} else {
			lower = slices.MaxFunc([][]byte{lower, prefixEnd(versions)}, bytes.Compare)
		}
	}
	if bytes.Compare(lower, upper) >= 0 {
		return nil, nil
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, s.fail("artifacts", err)
	}
	if q.Reverse {
		it.Last()
	} else {
		it.First()
	}
	return &artifactSource{store: s, it: it, puts: l.puts, reverse: q.Reverse}, nil
}

func (src *artifactSource) close() { _ = src.it.Close() }

// peek returns the next artifact without taking it; nil at the end.
func (src *artifactSource) peek() (*eventlog.Artifact, error) {
	if src.next != nil || src.err != nil {
		return src.next, src.err
	}
	var put uint64
	for src.it.Valid() {
		name, ok := parseArtifactKey(src.it.Key())
		if ok && src.next != nil && (name.seq != src.next.Seq || name.id != src.next.ID) {
			break
		}
		// Of the versions of one artifact, the greatest put that is shown.
		if !ok || (name.put <= src.puts && name.put > put) {
			var value []byte
			if name, value, src.err = src.store.artifactUnder(src.it); src.err != nil {
				src.next = nil
				return nil, src.err
			}
			src.next = &eventlog.Artifact{Kind: name.kind, Seq: name.seq, ID: name.id, Value: value}
			put = name.put
		}
		src.step()
	}
	if err := src.it.Error(); err != nil {
		src.err = src.store.fail("artifacts", err)
		src.next = nil
	}
	return src.next, src.err
}

func (src *artifactSource) step() {
	if src.reverse {
		src.it.Prev()
	} else {
		src.it.Next()
	}
}
