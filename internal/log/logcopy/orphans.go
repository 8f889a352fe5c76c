package logcopy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// LabelTemporary marks a session that a copy makes in the target only to fork others from it.
const LabelTemporary = "contextd.copy.temporary"

// removeTemporary removes temporary sessions of an interrupted copy.
func (c *copier) removeTemporary(ctx context.Context) error {
	return list(ctx, c.to, eventlog.SessionQuery{Labels: map[string]string{LabelTemporary: "true"}}, func(s eventlog.Session) error {
		return c.to.DeleteSession(ctx, s.ID, s.Incarnation, nil)
	})
}

// adopt copies forks whose parent was deleted, without their artifacts. Forks that share events of one parent share
// them in the target, too.
func (c *copier) adopt(ctx context.Context, group []lineage) error {
	var missing []eventlog.Session
	for _, f := range group {
		s, err := c.from.Session(ctx, f.id)
		if err == nil {
			err = c.verify(ctx, s)
		}
		if err == nil {
			_, err = c.to.Session(ctx, f.id)
			if eventlog.IsMissing(err) {
				missing = append(missing, s)
				continue
			}
		}
		if err == nil {
			// An earlier copy made it, perhaps in part, so all of it is compared.
			err = c.session(ctx, s, noneShared, nil)
		}
		if err := c.leave(f.id, err); err != nil {
			return err
		}
	}
	// Several sessions may have had the parent's id, one after the other: the forks of each make a group.
	for len(missing) > 0 {
		longest := slices.MaxFunc(missing, func(a, b eventlog.Session) int { return cmp.Compare(a.ForkSeq, b.ForkSeq) })
		var rest []eventlog.Session
		var siblings []eventlog.Session
		for _, s := range missing {
			same, err := c.sameParent(ctx, s, longest)
			switch {
			case err != nil:
				if err := c.leave(s.ID, err); err != nil {
					return err
				}
			case same:
				siblings = append(siblings, s)
			default:
				rest = append(rest, s)
			}
		}
		if err := c.adoptSiblings(ctx, longest, siblings); err != nil {
			return err
		}
		missing = rest
	}
	return nil
}

// sameParent reports whether s may be a fork of the same parent as longest, which shares at least as many events.
func (c *copier) sameParent(ctx context.Context, s, longest eventlog.Session) (bool, error) {
	if s.ID == longest.ID {
		return true, nil
	}
	if !bytes.Equal(s.Settings, longest.Settings) {
		return false, nil
	}
	if c.from.Capabilities().Chain {
		return sameChain(ctx, c.from, s.ID, longest.ID, s.ForkSeq)
	}
	first, err := sumOf(ctx, c.from, s.ID, 1, s.ForkSeq)
	if err != nil || s.ForkSeq == 0 {
		return err == nil, err
	}
	second, err := sumOf(ctx, c.from, longest.ID, 1, s.ForkSeq)
	return first == second, err
}

// adoptSiblings makes a temporary parent from the shared events of the longest fork, forks the siblings from it, and
// removes it.
func (c *copier) adoptSiblings(ctx context.Context, longest eventlog.Session, siblings []eventlog.Session) error {
	parent, err := c.to.CreateSession(ctx, eventlog.Session{
		ID: longest.ParentID, CreateTime: longest.CreateTime, Settings: longest.Settings,
		Labels: map[string]string{LabelTemporary: "true"},
	})
	if errors.As(err, new(*eventlog.ExistsError)) {
		return c.leaveAll(siblings, &DifferentError{longest.ParentID, fmt.Sprintf("the source deleted it after it forked %q from it", longest.ID)})
	}
	if err != nil {
		return err
	}
	if err := c.sharedEvents(ctx, longest, parent); err != nil {
		if err := c.leaveAll(siblings, err); err != nil {
			return err
		}
		siblings = nil
	}
	for _, s := range siblings {
		err := c.session(ctx, s, noneShared, func() (eventlog.Session, error) { return c.forkFrom(ctx, s) })
		if err := c.leave(s.ID, err); err != nil {
			return err
		}
	}
	return c.to.DeleteSession(ctx, parent.ID, parent.Incarnation, nil)
}

// leaveAll leaves each of the sessions for the same reason.
func (c *copier) leaveAll(sessions []eventlog.Session, err error) error {
	for _, s := range sessions {
		if err := c.leave(s.ID, err); err != nil {
			return err
		}
	}
	return nil
}

// sharedEvents appends to the temporary parent the events that the longest fork shares with its parent.
func (c *copier) sharedEvents(ctx context.Context, longest, parent eventlog.Session) error {
	a := newAdder(c.to, parent, longest.UpdateTime)
	if longest.ForkSeq > 0 {
		for e, err := range c.from.Read(ctx, longest.ID, 1, longest.ForkSeq) {
			if err != nil {
				return err
			}
			if err := a.add(ctx, e); err != nil {
				return err
			}
		}
	}
	if err := a.flush(ctx); err != nil {
		return err
	}
	c.count(func(r *Report) { r.NewEvents += uint64(longest.ForkSeq) })
	return nil
}
