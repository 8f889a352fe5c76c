package disklog

import (
	"context"
	"iter"

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
	shown := artifactMerge{store: s, links: found.links, query: q}
	defer shown.close()
	// Only the own link may have later puts. It is opened before the wait, so that what it shows is durable after the
	// wait.
	if err := shown.open(); err != nil {
		return nil, false, err
	}
	if err := found.settled(ctx); err != nil {
		return nil, false, err
	}
	more = true
	for read := 0; more && len(page) < size && read < pageBytes; {
		next, err := shown.next()
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
