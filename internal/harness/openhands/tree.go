package openhands

import eventlog "github.com/contextd/contextd/internal/log"

// labelAfter is on a message that does not follow the one before it in the file: the id of the message that it
// follows; empty if it follows none.
const labelAfter = Name + ".after"

// root is the parent of an event that begins a branch of its own.
const root = "__root__"

// stateUpdate is the kind of events that are no part of the tree of events.
const stateUpdate = "ConversationStateUpdateEvent"

// tree finds the place of each event among the messages, by the parents that events name.
type tree struct {
	// at is the last message up to an event, by the event's id.
	at map[string]string
	// here is that of the event that is read, and tail the last message that was appended.
	here, tail string
}

// enter goes to the place of an event. The model does not see what came after it in other branches.
func (c *conversation) enter(e *sdkEvent) {
	switch at, known := c.tree.at[e.ParentID]; {
	case e.Kind == stateUpdate:
		return
	case e.ParentID == root:
		c.tree.here = ""
	case e.ParentID != "" && known:
		c.tree.here = at
	}
	if c.tree.here == c.tree.tail {
		return
	}
	for len(c.view) > 0 && c.view[len(c.view)-1].event != c.tree.here {
		c.view = c.view[:len(c.view)-1]
	}
}

// leave notes what an event added to the session, whose events begin at index n.
func (c *conversation) leave(e *sdkEvent, n int) {
	for i, event := range c.session.Since(n) {
		if _, ok := event.Body.(*eventlog.Message); !ok {
			continue
		}
		if c.tree.here != c.tree.tail {
			c.session.Annotate(n+i, labelAfter, c.tree.here)
		}
		c.tree.here, c.tree.tail = event.ID, event.ID
	}
	if e.ID != "" {
		c.tree.at[e.ID] = c.tree.here
	}
}

// follows reports whether an event leaves a branch.
func follows(e eventlog.Event) bool {
	_, ok := e.Labels[labelAfter]
	return ok
}

// left returns the ids of the messages that are not on the path to the last one; nil if there is one path.
func left(events []eventlog.Event) map[string]bool {
	parents, last, branches := map[string]string{}, "", false
	for _, e := range events {
		if _, ok := e.Body.(*eventlog.Message); !ok {
			continue
		}
		parents[e.ID] = last
		if after, ok := e.Labels[labelAfter]; ok {
			parents[e.ID], branches = after, true
		}
		last = e.ID
	}
	if !branches {
		return nil
	}
	gone := make(map[string]bool, len(parents))
	for id := range parents {
		gone[id] = true
	}
	for id := last; gone[id]; id = parents[id] {
		delete(gone, id)
	}
	return gone
}
