package disklog

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
)

// artifactMerge iterates over the artifacts of a query that links show. If several links show an artifact, the newest
// link's version counts. It opens no more links than it needs, because a chain of forks has many.
type artifactMerge struct {
	store   *Store
	links   []link // not opened yet, from old to new
	query   eventlog.ArtifactQuery
	sources []*artifactSource // from new to old
	spare   spareIterator
}

func (m *artifactMerge) close() {
	for _, src := range m.sources {
		_ = src.it.Close()
	}
	m.spare.close()
}

// next returns the next artifact; nil at the end.
func (m *artifactMerge) next() (first *eventlog.Artifact, err error) {
	for at := 0; ; at++ {
		for at == len(m.sources) && m.needsMore(first) {
			if err := m.open(); err != nil {
				return nil, err
			}
		}
		if at == len(m.sources) {
			break
		}
		a, err := m.sources[at].peek()
		if err != nil {
			return nil, err
		}
		if a != nil && (first == nil || orderOf(a, first, m.query.Reverse) < 0) {
			first = a
		}
	}
	for _, src := range m.sources {
		if src.next != nil && orderOf(src.next, first, m.query.Reverse) == 0 {
			src.next = nil
		}
	}
	return first, nil
}

// needsMore reports whether links that are not opened may show an artifact before first, or another version of it. None of
// them shows one of a later event than the newest of them does.
func (m *artifactMerge) needsMore(first *eventlog.Artifact) bool {
	return len(m.links) > 0 && (first == nil || !m.query.Reverse || first.Seq <= m.links[len(m.links)-1].upTo)
}

// open opens the newest link that is not opened yet. It becomes a source if it shows an artifact of the query.
func (m *artifactMerge) open() error {
	l := m.links[len(m.links)-1]
	m.links = m.links[:len(m.links)-1]
	lower, upper, ok := m.bounds(l)
	if !ok {
		return nil
	}
	it, err := m.spare.within(m.store, lower, upper)
	if err != nil {
		return err
	}
	if m.query.Reverse {
		it.Last()
	} else {
		it.First()
	}
	src := &artifactSource{store: m.store, it: it, puts: l.puts, reverse: m.query.Reverse}
	if first, err := src.peek(); first == nil || err != nil {
		return err
	}
	m.sources, m.spare.it = append(m.sources, src), nil
	return nil
}

// bounds returns the keys between which a link has the artifacts of the query; false if it shows none.
func (m *artifactMerge) bounds(l link) (lower, upper []byte, ok bool) {
	to := l.upTo
	if m.query.To != 0 {
		to = min(to, m.query.To)
	}
	if m.query.From > to || l.puts == 0 {
		return nil, nil, false
	}
	prefix := artifactKindPrefix(l.segment, m.query.Kind)
	lower, upper = binary.BigEndian.AppendUint64(prefix[:len(prefix):len(prefix)], uint64(m.query.From)), prefixEnd(prefix)
	if to < unbounded {
		upper = binary.BigEndian.AppendUint64(prefix[:len(prefix):len(prefix)], uint64(to)+1)
	}
	if after := m.query.After; after != nil {
		versions := artifactPrefix(l.segment, m.query.Kind, after.Seq, after.ID)
		if m.query.Reverse {
			upper = slices.MinFunc([][]byte{upper, versions}, bytes.Compare)
		} else {
			lower = slices.MaxFunc([][]byte{lower, prefixEnd(versions)}, bytes.Compare)
		}
	}
	return lower, upper, bytes.Compare(lower, upper) < 0
}

func orderOf(a, b *eventlog.Artifact, reverse bool) int {
	order := cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID))
	if reverse {
		return -order
	}
	return order
}

// artifactSource iterates over the artifacts that one link shows.
type artifactSource struct {
	store   *Store
	it      *pebble.Iterator
	puts    uint64
	reverse bool
	next    *eventlog.Artifact // read ahead
	err     error
}

// peek returns the next artifact and stays before it; nil at the end.
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
		// Of the versions of one artifact, the one with the greatest put that is shown counts.
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

// spareIterator is an iterator that is used for one range after the other.
type spareIterator struct {
	it   *pebble.Iterator
	made int // how many iterators were made
}

// within returns the iterator on a range. Its owner may keep it; then the next call makes another.
func (s *spareIterator) within(store *Store, lower, upper []byte) (_ *pebble.Iterator, err error) {
	if s.it != nil {
		s.it.SetBounds(lower, upper)
		return s.it, nil
	}
	s.made++
	if s.it, err = store.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper}); err != nil {
		return nil, store.fail("artifacts", err)
	}
	return s.it, nil
}

func (s *spareIterator) close() {
	if s.it != nil {
		_ = s.it.Close()
	}
}
