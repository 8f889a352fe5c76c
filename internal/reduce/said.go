package reduce

import (
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Range is a run of seqs, both ends included.
type Range struct{ From, To eventlog.Seq }

// said keeps which events the groups are made of, without going through them.
type said struct {
	ranges []Range
	// shared leads from an event to its groups, by index, where they are several.
	shared map[eventlog.Seq][]int
}

// add takes in the next event and the groups that it is a part of.
func (s *said) add(seq eventlog.Seq, groups []int) {
	if n := len(s.ranges); n > 0 && s.ranges[n-1].To+1 == seq {
		s.ranges[n-1].To = seq
	} else {
		s.ranges = append(s.ranges, Range{seq, seq})
	}
	slices.Sort(groups)
	if groups = slices.Compact(groups); len(groups) > 1 {
		if s.shared == nil {
			s.shared = map[eventlog.Seq][]int{}
		}
		s.shared[seq] = groups
	}
}

// Said returns the events that the groups are made of, as runs in order. The slice
// must not be changed, and is valid until the next Append.
func (c *Conversation) Said() []Range { return c.said.ranges }

// Shared returns the groups that an event is a part of where they are several.
func (c *Conversation) Shared(seq eventlog.Seq) []*Group {
	at := c.said.shared[seq]
	groups := make([]*Group, len(at))
	for i := range at {
		groups[i] = c.groups[at[i]]
	}
	return groups
}
