package projection

import "github.com/contextd/contextd/internal/reduce"

// readCalls keeps what was read of the calls of groups. What a policy decides does not
// depend on it.
type readCalls struct{ reduce.Memo[groupCalls] }

// groupCalls is what was read of a group's calls.
type groupCalls struct {
	calls []reduce.Call
	// failed are those that failed, and good the number of those that did not.
	failed []*reduce.Call
	good   int
	// subjects are empty until they are asked for.
	subjects map[*reduce.Call]string
	// dropped and pointers replace the group and its failed
	// calls' results, nil until it is needed.
	dropped  *reduce.Dropped
	pointers map[*reduce.Call]*reduce.Prepared
}

// drop is what replaces group i of v, of which this was read. The reason
// is the same whenever one policy asks.
func (c *groupCalls) drop(v reduce.View, i int, policy, reason string) *reduce.Dropped {
	if c.dropped == nil {
		c.dropped = v.PrepareDrop(i, policy, reason, true)
	}
	return c.dropped
}

// pointer is what replaces the result of one of the failed calls.
func (c *groupCalls) pointer(v reduce.View, i int, call *reduce.Call, policy, reason string) *reduce.Prepared {
	p, ok := c.pointers[call]
	if !ok {
		p = v.Prepare(i, call, reduce.Redacted, pointerText(v.Recall(), call), policy, reason)
		c.pointers[call] = p
	}
	return p
}

// read returns what was read of each group of the view, nil for one without calls.
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

// subject is that of one of the calls.
func (c *groupCalls) subject(call *reduce.Call) string {
	s, ok := c.subjects[call]
	if !ok {
		s = subject(call)
		c.subjects[call] = s
	}
	return s
}
