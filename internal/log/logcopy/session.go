package logcopy

import (
	"bytes"
	"context"
	"maps"

	eventlog "github.com/contextd/contextd/internal/log"
)

// root copies a session that is no fork, without its artifacts.
func (c *copier) root(ctx context.Context, s eventlog.Session) error {
	return c.session(ctx, s, noneShared, func() (eventlog.Session, error) {
		return c.to.CreateSession(ctx, eventlog.Session{ID: s.ID, CreateTime: s.CreateTime, Labels: s.Labels, Settings: s.Settings})
	})
}

// fork copies a fork whose parent was copied, without its artifacts.
func (c *copier) fork(ctx context.Context, s eventlog.Session) error {
	if c.hasFailed(s.ParentID) {
		return &parentError{s.ID, s.ParentID}
	}
	return c.session(ctx, s, c.sharedWithParent, func() (eventlog.Session, error) { return c.forkFrom(ctx, s) })
}

func (c *copier) forkFrom(ctx context.Context, s eventlog.Session) (eventlog.Session, error) {
	labels := s.Labels
	if labels == nil {
		labels = map[string]string{} // none, instead of the parent's
	}
	return c.to.Fork(ctx, eventlog.ForkRequest{ParentID: s.ParentID, At: s.ForkSeq, NewID: s.ID, Time: s.CreateTime, Labels: labels})
}

// A sharing returns the event up to which the log of a session need not be compared.
type sharing func(context.Context, eventlog.Session) (eventlog.Seq, error)

func noneShared(context.Context, eventlog.Session) (eventlog.Seq, error) { return 0, nil }

// sharedWithParent returns the last event that a fork shares with its parent, if the hash chains of both stores show
// that the logs are the same up to it; else 0. The parent's log was compared already.
func (c *copier) sharedWithParent(ctx context.Context, s eventlog.Session) (eventlog.Seq, error) {
	for _, store := range []eventlog.Store{c.from, c.to} {
		if !store.Capabilities().Chain {
			return 0, nil
		}
		if same, err := sameChain(ctx, store, s.ID, s.ParentID, s.ForkSeq); !same || err != nil {
			return 0, err
		}
	}
	return s.ForkSeq, nil
}

func sameChain(ctx context.Context, store eventlog.Store, a, b string, at eventlog.Seq) (bool, error) {
	first, err := store.ChainHead(ctx, a, at)
	if err != nil {
		return false, err
	}
	second, err := store.ChainHead(ctx, b, at)
	return bytes.Equal(first, second), err
}

// session makes a session unless the target has it, and copies and compares its events.
func (c *copier) session(ctx context.Context, s eventlog.Session, shared sharing, create func() (eventlog.Session, error)) error {
	if err := c.verify(ctx, s); err != nil {
		return err
	}
	target, err := c.to.Session(ctx, s.ID)
	created := eventlog.IsMissing(err)
	if created {
		target, err = create()
	}
	if err != nil {
		return err
	}
	if what := different(s, target); what != "" {
		return &DifferentError{s.ID, what}
	}
	compared, err := shared(ctx, s)
	if err != nil {
		return err
	}
	if err := c.events(ctx, s, target, compared); err != nil {
		return err
	}
	if target, err = c.to.Session(ctx, s.ID); err != nil {
		return err
	}
	if what := incomplete(s, target); what != "" {
		return &DifferentError{s.ID, what}
	}
	c.count(func(r *Report) {
		r.Sessions++
		if s.ForkSeq > 0 {
			r.Forks++
		}
		if created {
			r.NewSessions++
		}
		r.Events += uint64(s.Head)
		if c.opts.Done != nil {
			c.opts.Done(s.ID)
		}
	})
	return nil
}

// verify checks the hash chain of a session of the source, where that has one: the target computes a new one, which
// would hide a change of the events.
func (c *copier) verify(ctx context.Context, s eventlog.Session) error {
	v, ok := c.from.(interface {
		Verify(ctx context.Context, id string) error
	})
	if !ok {
		return nil
	}
	return v.Verify(ctx, s.ID)
}

// different says how an existing session of the target, perhaps copied in part, differs; empty if it does not.
func different(s, target eventlog.Session) string {
	switch {
	case target.Damaged:
		return "it is damaged"
	case !target.CreateTime.Equal(s.CreateTime):
		return "it was made at another time"
	case target.ParentID != s.ParentID || target.ForkSeq != s.ForkSeq:
		return "it is a fork of something else"
	case !maps.Equal(target.Labels, s.Labels):
		return "it has other labels"
	case !bytes.Equal(target.Settings, s.Settings):
		return "it has other settings"
	case target.Head > s.Head:
		return "it has more events"
	default:
		return ""
	}
}

// incomplete says how a session differs after it was copied; empty if it does not.
func incomplete(s, target eventlog.Session) string {
	switch what := different(s, target); {
	case what != "":
		return what
	case target.Head != s.Head:
		return "it does not have all events"
	case !target.UpdateTime.Equal(s.UpdateTime):
		return "its newest event came at another time"
	case target.Turns != s.Turns:
		return "it has another number of model calls"
	default:
		return ""
	}
}
