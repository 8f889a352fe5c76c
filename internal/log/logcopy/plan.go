package logcopy

import (
	"cmp"
	"context"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// plan is the order in which sessions are copied. It lists only forks and their parents, which are few even in a
// large store.
type plan struct {
	sessions int
	// orphans are the forks whose parents were deleted, grouped by the parent's id. They are copied first: until then
	// no other session of the target may have that id.
	orphans [][]lineage
	// levels are the other forks, by depth: the parents of a level are in earlier levels, or are no forks.
	levels [][]string
	// parents are the ids of sessions from which forks were made.
	parents map[string]bool
}

// lineage says from which parent a fork was made, and when.
type lineage struct {
	id, parent string
	at         eventlog.Seq
	made       eventlog.Incarnation
}

// family lists all sessions that may share artifacts with others.
func (p *plan) family() (ids []string) {
	seen := map[string]bool{}
	add := func(id string) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for id := range p.parents {
		add(id)
	}
	for _, group := range p.orphans {
		for _, f := range group {
			add(f.id)
		}
	}
	for _, level := range p.levels {
		for _, id := range level {
			add(id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (c *copier) plan(ctx context.Context) (*plan, error) {
	p := &plan{parents: map[string]bool{}}
	forks := map[string]lineage{}
	damaged := map[string]eventlog.Incarnation{}
	err := list(ctx, c.from, eventlog.SessionQuery{}, func(s eventlog.Session) error {
		p.sessions++
		if s.Damaged {
			damaged[s.ID] = s.Incarnation
			return c.leave(s.ID, &eventlog.CorruptError{Session: s.ID, What: "its log", Reason: "not all of it can be read: repair the store before it is copied"})
		}
		if _, temporary := s.Labels[LabelTemporary]; temporary {
			return &UnfinishedError{s.ID}
		}
		if s.ParentID != "" {
			forks[s.ID] = lineage{s.ID, s.ParentID, s.ForkSeq, s.Incarnation}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	orphans := map[string][]lineage{}
	depths := map[string]int{}
	// They are ordered by create time, so that a parent comes before its forks.
	for _, f := range inOrder(forks) {
		var alive bool
		var err error
		if made, ok := damaged[f.parent]; !ok {
			alive, err = c.hasParent(ctx, f)
		} else if made < f.made {
			err = &parentError{f.id, f.parent}
		}
		if err != nil {
			if err := c.leave(f.id, err); err != nil {
				return nil, err
			}
			continue
		}
		if !alive {
			orphans[f.parent] = append(orphans[f.parent], f)
			continue
		}
		p.parents[f.parent] = true
		depth := depths[f.parent] // 0 if the parent is no fork, or is an orphan
		depths[f.id] = depth + 1
		if depth == len(p.levels) {
			p.levels = append(p.levels, nil)
		}
		p.levels[depth] = append(p.levels[depth], f.id)
	}
	for _, group := range orphans {
		p.orphans = append(p.orphans, group)
	}
	// An orphan may itself have had an id that an earlier parent had. It was made after that parent's forks, so its
	// group must come after theirs: sort by the newest.
	slices.SortFunc(p.orphans, func(a, b []lineage) int { return cmp.Compare(a[len(a)-1].made, b[len(b)-1].made) })
	return p, nil
}

func inOrder(forks map[string]lineage) []lineage {
	all := make([]lineage, 0, len(forks))
	for _, f := range forks {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b lineage) int { return cmp.Compare(a.made, b.made) })
	return all
}

// hasParent reports whether the session from which a fork was made still exists. A session with the parent's id that
// was made after the fork is another one.
func (c *copier) hasParent(ctx context.Context, f lineage) (bool, error) {
	parent, err := c.from.Session(ctx, f.parent)
	if eventlog.IsMissing(err) {
		return false, nil
	}
	return err == nil && parent.Incarnation < f.made && parent.Head >= f.at, err
}
