package disklog

import (
	"context"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
)

// CreateSession makes an empty session.
func (s *Store) CreateSession(ctx context.Context, from eventlog.Session) (_ eventlog.Session, err error) {
	defer inSession(from.ID, &err)
	if err := from.Validate(); err != nil {
		return eventlog.Session{}, err
	}
	if err := s.enterToAdd(ctx); err != nil {
		return eventlog.Session{}, err
	}
	defer s.leave()
	sl, err := s.acquire(from.ID)
	if err != nil {
		return eventlog.Session{}, err
	}
	defer s.release(sl)
	sl.mu.Lock()
	c, err := s.create(sl, eventlog.Session{
		ID:         from.ID,
		CreateTime: from.CreateTime,
		Labels:     from.Labels,
		Settings:   from.Settings,
	}, nil, state{}, nil)
	made := sl.session.Load()
	sl.mu.Unlock()
	return s.created(ctx, made, c, err)
}

// create makes a session whose log begins with the links. The slot's mu is held. If the session exists already, the
// error is *ExistsError and the commit its newest. also, if not nil, adds further changes to the batch, which belong
// to the other slots.
func (s *Store) create(sl *slot, from eventlog.Session, shared []link, at state, also func(*pebble.Batch) error, others ...*slot) (*commit, error) {
	if there := sl.session.Load(); there != nil {
		return there.last, &eventlog.ExistsError{Kind: "session", Name: sl.id}
	}
	own := link{segment: s.newSegment(), base: at.head.Seq, upTo: unbounded, puts: unbounded}
	var put puts
	if len(shared) > 0 {
		put.bytes = from.ArtifactBytes
	}
	made := newSession(newRecord(from, append(shared, own)), at, put)
	made.at.update = made.info.CreateTime
	batch := s.db.NewBatch()
	if err := s.putSession(batch, made.record); err != nil {
		return nil, err
	}
	if put.bytes > 0 {
		if err := putPuts(batch, own.segment, put); err != nil {
			return nil, err
		}
	}
	if also != nil {
		if err := also(batch); err != nil {
			return nil, err
		}
	}
	shown := made.at
	c, err := s.submit(batch, func() { made.publish(shown) }, nil, append(others, sl)...)
	if err != nil {
		return nil, err
	}
	made.last = c
	sl.session.Store(made)
	return c, nil
}

// created waits for the commit of create.
func (s *Store) created(ctx context.Context, made *session, c *commit, err error) (eventlog.Session, error) {
	if waitErr := c.wait(ctx); waitErr != nil {
		return eventlog.Session{}, waitErr
	}
	if err != nil {
		return eventlog.Session{}, err
	}
	return made.describe(), nil
}
