package memlog

import (
	"context"
	"iter"
	"math"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// done is a commit that needs no wait.
type done []eventlog.Receipt

func (d done) Wait(context.Context) ([]eventlog.Receipt, error) { return d, nil }

// Append admits a batch.
func (s *Store) Append(ctx context.Context, id string, b eventlog.Batch) (eventlog.Commit, error) {
	if err := eventlog.ValidateSessionID("session_id", id); err != nil {
		return nil, err
	}
	prepared, err := eventlog.Prepare(b)
	if err != nil {
		return nil, err
	}
	if err := eventlog.ValidateArtifacts(b.Artifacts); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	target := s.sessions[id]
	if err := target.is(b.Of, id); err != nil {
		return nil, err
	}
	admission, err := prepared.Admit(target.newest(), func(i int) (eventlog.Known, bool, error) {
		known, found := target.lookup(b.Events[i].ID)
		return known, found, nil
	})
	if err != nil {
		return nil, err
	}
	if len(admission.Fresh) == 0 {
		return done(admission.Receipts), nil
	}
	if err := target.mayPut(id, b.Artifacts); err != nil {
		return nil, err
	}
	now := b.Time.UTC().Round(0)
	if target == nil {
		target = s.add(eventlog.Session{ID: id, CreateTime: now}, nil, eventlog.Head{}, 0)
	}
	target.extend(admission, now)
	target.put(b.Artifacts)
	return done(admission.Receipts), nil
}

// is returns an error unless the session is the incarnation that a batch is meant for.
func (s *session) is(of *eventlog.Incarnation, id string) error {
	switch {
	case of == nil:
		return nil
	case *of == 0 && s != nil:
		return &eventlog.ExistsError{Kind: "session", Name: id}
	case *of != 0 && (s == nil || s.info.Incarnation != *of):
		return eventlog.NoSession(id)
	default:
		return nil
	}
}

// newest returns the head, or the head of an empty log if s is nil.
func (s *session) newest() eventlog.Head {
	if s == nil {
		return eventlog.Head{}
	}
	return s.head
}

func (s *session) lookup(eventID string) (eventlog.Known, bool) {
	if s == nil {
		return eventlog.Known{}, false
	}
	for _, l := range s.chain {
		if r, ok := l.find(eventID); ok {
			return eventlog.Known{Seq: r.event.Seq, Digest: r.digest, Tokens: r.event.Tokens}, true
		}
	}
	return eventlog.Known{}, false
}

func (s *session) extend(a eventlog.Admission, now time.Time) {
	own := s.own()
	for _, f := range a.Fresh {
		s.bytes += eventlog.Size(f.Event)
		own.records = append(own.records, record{event: f.Event, digest: f.Digest, change: f.Change, bytes: s.bytes})
		own.seqs[f.Event.ID] = f.Event.Seq
	}
	s.head = a.Head
	s.info.UpdateTime = now
	close(s.moved)
	s.moved = make(chan struct{})
}

// Read yields events.
func (s *Store) Read(ctx context.Context, id string, from, to eventlog.Seq) iter.Seq2[eventlog.Event, error] {
	if to == 0 {
		to = math.MaxUint64
	}
	return s.ReadRuns(ctx, id, eventlog.Ranges{{From: from, To: to}})
}

// ReadRuns implements eventlog.RunsReader.
func (s *Store) ReadRuns(ctx context.Context, id string, all eventlog.Ranges) iter.Seq2[eventlog.Event, error] {
	return func(yield func(eventlog.Event, error) bool) {
		if len(all) == 0 {
			return
		}
		runs, err := s.runs(ctx, id, all)
		if err != nil {
			yield(eventlog.Event{}, err)
			return
		}
		for _, run := range runs {
			for _, r := range run {
				if err := ctx.Err(); err != nil {
					yield(eventlog.Event{}, err)
					return
				}
				if !yield(r.event, nil) {
					return
				}
			}
		}
	}
}

// runs returns the records of some runs. Records never change, so callers read them without the lock.
func (s *Store) runs(ctx context.Context, id string, all eventlog.Ranges) ([][]record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	runs := make([][]record, 0, len(all)*len(found.chain))
	for _, r := range all {
		for _, l := range found.chain {
			runs = append(runs, l.slice(r.From, r.To))
		}
	}
	return runs, nil
}

// ChainHead returns nil for every event: the store has no chain.
func (s *Store) ChainHead(ctx context.Context, id string, seq eventlog.Seq) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, err := s.find(ctx, id)
	if err == nil && seq > found.head.Seq {
		err = eventlog.NoEvent(seq)
	}
	return nil, err
}

// WaitPast waits until the head is not seq.
func (s *Store) WaitPast(ctx context.Context, id string, seq eventlog.Seq) (eventlog.Seq, error) {
	s.mu.RLock()
	found, err := s.find(ctx, id)
	s.mu.RUnlock()
	if err != nil {
		return 0, err
	}
	for {
		s.mu.RLock()
		head, moved, err := found.head.Seq, found.moved, s.check(ctx)
		gone := err == nil && s.sessions[id] != found
		s.mu.RUnlock()
		switch {
		case err != nil:
			return 0, err
		case gone:
			return 0, eventlog.NoSession(id)
		case head != seq:
			return head, nil
		}
		select {
		case <-moved:
		case <-s.closed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
