package projection

import "github.com/contextd/contextd/internal/reduce"

// readCalls keeps what was read of the calls of groups, which never change, so that a
// request reads only what is new. It holds the groups of the last view alone. What a
// policy decides does not depend on it. The zero value is empty and ready.
type readCalls struct {
	of map[*reduce.Group]*groupCalls
}

// groupCalls is what was read of a group's calls.
type groupCalls struct {
	calls []reduce.Call
	// failed are those that failed, and good the number of those that did not.
	failed []*reduce.Call
	good   int
	// subjects are empty until they are asked for.
	subjects map[*reduce.Call]string
	// leaving and pointers are what stands in the place of the group and of its failed
	// calls' results, nil until it is needed.
	leaving  *reduce.Dropped
	pointers map[*reduce.Call]*reduce.Prepared
}

// leave is what stands in the place of group i of v, of which this was read. The reason
// is the same whenever one policy asks.
func (c *groupCalls) leave(v reduce.View, i int, policy, reason string) *reduce.Dropped {
	if c.leaving == nil {
		c.leaving = v.PrepareDrop(i, policy, reason, true)
	}
	return c.leaving
}

// pointer is what stands in the place of the result of one of the failed calls.
func (c *groupCalls) pointer(v reduce.View, i int, call *reduce.Call, policy, reason string) *reduce.Prepared {
	p, ok := c.pointers[call]
	if !ok {
		if c.pointers == nil {
			c.pointers = map[*reduce.Call]*reduce.Prepared{}
		}
		p = v.Prepare(i, call, reduce.Redacted, pointerText(call), policy, reason)
		c.pointers[call] = p
	}
	return p
}

// read returns what was read of each group of the view, nil for one without calls.
func (r *readCalls) read(v reduce.View) []*groupCalls {
	all := make([]*groupCalls, v.Len())
	next := make(map[*reduce.Group]*groupCalls, v.Len())
	for i := range all {
		if v.Ended() != nil {
			break
		}
		g := v.Group(i)
		if len(g.Calls) == 0 {
			continue
		}
		if all[i] = r.of[g]; all[i] == nil {
			all[i] = readGroup(g)
		}
		next[g] = all[i]
	}
	r.of = next
	return all
}

func readGroup(g *reduce.Group) *groupCalls {
	out := &groupCalls{calls: g.Calls}
	for j := range g.Calls {
		switch call := &g.Calls[j]; {
		case Failed(call):
			out.failed = append(out.failed, call)
		case !call.Interrupted:
			out.good++
		}
	}
	return out
}

// subject is that of one of the calls.
func (c *groupCalls) subject(call *reduce.Call) string {
	s, ok := c.subjects[call]
	if !ok {
		if c.subjects == nil {
			c.subjects = map[*reduce.Call]string{}
		}
		s = subject(call)
		c.subjects[call] = s
	}
	return s
}
