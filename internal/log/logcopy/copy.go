package logcopy

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Options configure a copy. The zero value is valid.
type Options struct {
	// Workers is how many sessions are copied at once; 0 is 8.
	Workers int
	// Found, if set, is called with the number of sessions before the copy. Done, if set, is called after each
	// session, one call at a time.
	Found func(sessions int)
	Done  func(sessionID string)
}

// Report counts what is in the target and was compared with the source.
type Report struct {
	// Sessions is how many sessions are the same in both. Forks of these share events with their parent. An event or
	// artifact counts once for each session that shows it.
	Sessions, Forks, Events, Artifacts uint64
	// These are new in the target. An event that forks share counts once.
	NewSessions, NewEvents, NewArtifacts uint64
}

// page is how many sessions are listed at once.
const page = 256

// Copy copies all sessions. If it fails, the report says what was done until then. During a copy nobody else may
// write to the source, or to sessions of the target with the same ids. The error is a *PartError if only some sessions
// could not be copied, and a *MeanwhileError if another writer wrote to the target.
func Copy(ctx context.Context, from, to eventlog.Store, opts Options) (Report, error) {
	if opts.Workers == 0 {
		opts.Workers = 8
	}
	c := &copier{from: from, to: to, opts: opts, failed: map[string]error{}}
	err := explain(c.run(ctx))
	if err == nil && len(c.failed) > 0 {
		err = &PartError{c.failed}
	}
	return c.report, err
}

type copier struct {
	from, to eventlog.Store
	opts     Options

	mu     sync.Mutex
	report Report           // guarded by mu
	failed map[string]error // guarded by mu; by the session's id
}

func (c *copier) run(ctx context.Context) error {
	if err := c.removeTemporary(ctx); err != nil {
		return err
	}
	plan, err := c.plan(ctx)
	if err != nil {
		return err
	}
	if c.opts.Found != nil {
		c.opts.Found(plan.sessions)
	}
	for _, group := range plan.orphans {
		if err := c.adopt(ctx, group); err != nil {
			return err
		}
	}
	err = c.eachSession(ctx, func(ctx context.Context, s eventlog.Session) error {
		if s.ParentID != "" || c.hasFailed(s.ID) {
			return nil
		}
		err := c.root(ctx, s)
		if err == nil && !plan.parents[s.ID] {
			err = c.artifacts(ctx, s)
		}
		return c.leave(s.ID, err)
	})
	if err != nil {
		return err
	}
	for _, level := range plan.levels {
		if err := c.together(ctx, level, c.fork); err != nil {
			return err
		}
	}
	// A fork shares its parent's artifacts as they are when it is made. In the source they may have changed since, so
	// artifacts are copied only after the last fork was made.
	family := plan.family()
	return c.together(ctx, family, c.artifacts)
}

// leave records that a session cannot be copied, if that is all that err says: others can be. It returns any other error.
func (c *copier) leave(id string, err error) error {
	named := id
	if different, ok := errors.AsType[*DifferentError](err); ok {
		named = different.Session
	} else if corrupt, ok := errors.AsType[*eventlog.CorruptError](err); ok {
		named = corrupt.Session
	} else if _, ok := errors.AsType[*parentError](err); !ok {
		return err
	}
	if named != id {
		err = fmt.Errorf("session %q: %w", id, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed[id] = err
	return nil
}

func (c *copier) hasFailed(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed[id] != nil
}

// together reads the sessions with these ids again, and calls each for them, in parallel.
func (c *copier) together(ctx context.Context, ids []string, each func(context.Context, eventlog.Session) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.opts.Workers)
	for _, id := range ids {
		if c.hasFailed(id) {
			continue
		}
		group.Go(func() error {
			s, err := c.from.Session(ctx, id)
			if err == nil {
				err = each(ctx, s)
			}
			return c.leave(id, err)
		})
	}
	return group.Wait()
}

// eachSession calls each, in parallel, for all sessions of the source.
func (c *copier) eachSession(ctx context.Context, each func(context.Context, eventlog.Session) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.opts.Workers)
	err := list(ctx, c.from, eventlog.SessionQuery{}, func(s eventlog.Session) error {
		group.Go(func() error { return each(ctx, s) })
		return ctx.Err()
	})
	if failed := group.Wait(); failed != nil {
		return failed
	}
	return err
}

// list calls each for the sessions of a query, one after the other.
func list(ctx context.Context, store eventlog.Store, q eventlog.SessionQuery, each func(eventlog.Session) error) error {
	for q.Limit = page; ; {
		sessions, err := store.ListSessions(ctx, q)
		if err != nil {
			return err
		}
		for _, s := range sessions {
			if err := each(s); err != nil {
				return err
			}
		}
		if len(sessions) < page {
			return nil
		}
		q.After = sessions[len(sessions)-1].ID
	}
}

func (c *copier) count(add func(*Report)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.report)
}
