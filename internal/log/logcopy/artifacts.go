package logcopy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// artifacts compares the artifacts of a session with those in the target. It puts those that are missing or have
// another value there, and reads their kinds again to check them.
func (c *copier) artifacts(ctx context.Context, s eventlog.Session) error {
	kinds, err := c.from.ArtifactKinds(ctx, s.ID)
	if err != nil {
		return err
	}
	target, err := c.to.Session(ctx, s.ID)
	if err != nil {
		return err
	}
	others, err := c.to.ArtifactKinds(ctx, s.ID)
	if err != nil {
		return err
	}
	for _, kind := range others {
		if !slices.Contains(kinds, kind) {
			return &DifferentError{s.ID, fmt.Sprintf("it has artifacts of the kind %q", kind)}
		}
	}
	var n, added uint64
	for _, kind := range kinds {
		p := &putter{to: c.to, session: s.ID, of: target.Incarnation}
		all, err := c.artifactsOf(ctx, s.ID, kind, p)
		if err != nil {
			return err
		}
		n, added = n+all, added+p.added
	}
	c.count(func(r *Report) { r.Artifacts, r.NewArtifacts = r.Artifacts+n, r.NewArtifacts+added })
	return nil
}

// artifactsOf compares the artifacts of one kind, which both stores yield in the same order.
func (c *copier) artifactsOf(ctx context.Context, id, kind string, p *putter) (n uint64, err error) {
	q := eventlog.ArtifactQuery{Kind: kind}
	there, stop := iter.Pull2(c.to.Artifacts(ctx, id, q))
	defer stop()
	has, err, more := there()
	read := sha256.New()
	for a, failed := range c.from.Artifacts(ctx, id, q) {
		if failed != nil || err != nil {
			return n, cmp.Or(failed, err)
		}
		n++
		one := artifactIdentity(a)
		read.Write(one[:])
		order := -1 // the target lacks it
		if more {
			order = cmp.Or(cmp.Compare(a.Seq, has.Seq), cmp.Compare(a.ID, has.ID))
		}
		switch {
		case order > 0:
			return n, extra(id, has)
		case order < 0 || !bytes.Equal(a.Value, has.Value):
			if err := p.put(ctx, a); err != nil {
				return n, err
			}
		}
		if order == 0 {
			has, err, more = there()
		}
	}
	if err != nil {
		return n, err
	}
	if more {
		return n, extra(id, has)
	}
	if err := p.flush(ctx); err != nil || p.added == 0 {
		return n, err
	}
	stored := sha256.New()
	for a, err := range c.to.Artifacts(ctx, id, q) {
		if err != nil {
			return n, err
		}
		one := artifactIdentity(a)
		stored.Write(one[:])
	}
	if sum(stored) != sum(read) {
		err = &DifferentError{id, fmt.Sprintf("what was written of its artifacts of the kind %q is not what was read", kind)}
	}
	return n, err
}

func extra(id string, a eventlog.Artifact) error {
	return &DifferentError{id, fmt.Sprintf("it has the artifact %s of event %d", a.Name(), a.Seq)}
}

func artifactIdentity(a eventlog.Artifact) [sha256.Size]byte {
	value := sha256.Sum256(a.Value)
	return sha256.Sum256(fmt.Appendf(value[:], "%d %d %s %s", a.Seq, len(a.Kind), a.Kind, a.ID))
}

// putter puts artifacts, several at once.
type putter struct {
	to      eventlog.Store
	session string
	of      eventlog.Incarnation
	added   uint64

	waiting []eventlog.Artifact
	bytes   uint64
}

func (p *putter) put(ctx context.Context, a eventlog.Artifact) error {
	p.added++
	a.Of = p.of
	p.waiting = append(p.waiting, a)
	if p.bytes += a.Size(); len(p.waiting) < batchEvents && p.bytes < batchBytes {
		return nil
	}
	return p.flush(ctx)
}

func (p *putter) flush(ctx context.Context) error {
	if len(p.waiting) == 0 {
		return nil
	}
	err := p.to.PutArtifacts(ctx, p.session, p.waiting...)
	p.waiting, p.bytes = nil, 0
	return err
}
