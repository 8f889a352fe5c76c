package reduce

import eventlog "github.com/contextd/contextd/internal/log"

// Live is the agent's current plan or scratchpad: the text of the newest event with one.
type Live struct {
	Seq  eventlog.Seq
	Text string
}

func isLive(standing string) bool {
	return standing == eventlog.StandingPlan || standing == eventlog.StandingScratchpad
}

// Live returns the agent's plan or scratchpad, by the name of its standing event; zero if the log has none.
func (c *Conversation) Live(standing string) Live { return c.live[standing] }

// observeLive records an event with a plan or a scratchpad.
func (c *Conversation) observeLive(e eventlog.Event) {
	name := e.Labels[eventlog.LabelStanding]
	if !isLive(name) {
		return
	}
	now := Live{Seq: e.Seq}
	switch b := e.Body.(type) {
	case *eventlog.Message:
		if !e.Injected() || b.Role != eventlog.RoleUser && b.Role != eventlog.RoleSystem {
			return
		}
		now.Text = textOf(b.Blocks)
	case *eventlog.Reminder:
		now.Text = b.Body
	case *eventlog.Custom:
		now.Text = b.JSON
	default:
		return
	}
	c.live[name] = now
}

// Live reports whether group i is the newest plan or scratchpad that is in the view.
func (v View) Live(i int) bool { return v.items[i].group.isLive() && v.InForce(i) }
