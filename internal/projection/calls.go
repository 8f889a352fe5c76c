package projection

import "github.com/contextd/contextd/internal/reduce"

// readCalls caches what was read of the calls of groups. It only saves time: no decision depends on what is
// cached.
type readCalls struct{ reduce.Memo[groupCalls] }

// groupCalls is what was read of the calls of one group.
type groupCalls struct {
	calls []reduce.Call
	// failed are the calls that failed, and good counts those that succeeded.
	failed []*reduce.Call
	good   int
	// subjects are filled in as needed.
	subjects map[*reduce.Call]string
	// dropped replaces the group, and pointers replace the results of its failed calls; filled in as
	// needed.
	dropped  *reduce.Dropped
	pointers map[*reduce.Call]*reduce.Prepared
}

// drop returns what replaces group i of v, which must be the group of c. It is cached: a policy must always give
// the same reason.
func (c *groupCalls) drop(v reduce.View, i int, policy, reason string) *reduce.Dropped {
	if c.dropped == nil {
		c.dropped = v.PrepareDrop(i, policy, reason, true)
	}
	return c.dropped
}

// pointer returns what replaces the result of a failed call. It is cached, too.
func (c *groupCalls) pointer(v reduce.View, i int, call *reduce.Call, policy, reason string) *reduce.Prepared {
	p, ok := c.pointers[call]
	if !ok {
		p = v.Prepare(i, call, reduce.Redacted, pointerText(v.Recall(), call), policy, reason)
		c.pointers[call] = p
	}
	return p
}

// read returns what is known of the calls of each group of the view; nil for a group without calls.
func (r *readCalls) read(v reduce.View) []*groupCalls {
	all := make([]*groupCalls, v.Len())
	for i := range all {
		if v.Ended() != nil {
			break
		}
		g := v.Group(i)
		if len(g.Calls) == 0 {
			continue
		}
		if all[i] = r.Of(g); all[i].calls == nil {
			all[i].read(g)
		}
	}
	r.Prune(v.Groups())
	return all
}

func (c *groupCalls) read(g *reduce.Group) {
	c.calls = g.Calls
	c.subjects, c.pointers = map[*reduce.Call]string{}, map[*reduce.Call]*reduce.Prepared{}
	for j := range g.Calls {
		switch call := &g.Calls[j]; {
		case Failed(call):
			c.failed = append(c.failed, call)
		case !call.Interrupted:
			c.good++
		}
	}
}

// subject returns the cached subject of a call: see the function subject.
func (c *groupCalls) subject(call *reduce.Call) string {
	s, ok := c.subjects[call]
	if !ok {
		s = subject(call)
		c.subjects[call] = s
	}
	return s
}
