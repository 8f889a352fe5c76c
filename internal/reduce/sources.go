package reduce

import (
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// sources records of which events the groups are made.
type sources struct {
	ranges eventlog.Ranges
	// shared maps an event to the indexes of its groups, if it has several.
	shared map[eventlog.Seq][]int
}

// add adds the next event and the groups that it is a part of.
func (s *sources) add(seq eventlog.Seq, groups []int) {
	s.ranges.Add(seq)
	slices.Sort(groups)
	if groups = slices.Compact(groups); len(groups) > 1 {
		if s.shared == nil {
			s.shared = map[eventlog.Seq][]int{}
		}
		s.shared[seq] = groups
	}
}

// Events returns the events of which the groups are made. The caller must not change the slice. It is valid until the
// next Append.
func (c *Conversation) Events() eventlog.Ranges { return c.sources.ranges }

// SharesEvents reports whether any event is a part of several groups.
func (c *Conversation) SharesEvents() bool { return len(c.sources.shared) > 0 }

// Shared returns the groups of which an event is a part; nil if it is a part of only one.
func (c *Conversation) Shared(seq eventlog.Seq) []*Group {
	at := c.sources.shared[seq]
	groups := make([]*Group, len(at))
	for i := range at {
		groups[i] = c.lend()[at[i]]
	}
	return groups
}
