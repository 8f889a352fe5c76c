package codex

import (
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// rolledBack is the type of the event that takes the newest turns of the conversation back.
const rolledBack = "thread_rolled_back"

// rollsBack reports whether an event is such a record.
func rollsBack(e eventlog.Event) bool {
	c, ok := e.Body.(*eventlog.Custom)
	return ok && c.Type == transcript.CustomType(Name, "event_msg."+rolledBack)
}

// left returns the ids of the messages that were taken back; nil if there is no such event. What the harness
// added before a turn goes with it; what comes before the first turn stays.
func left(events []eventlog.Event) map[string]bool {
	var gone map[string]bool
	var live, turns []int // indices of messages, and positions in live where turns begin
	for i := range events {
		if m, ok := events[i].Body.(*eventlog.Message); ok {
			if beginsTurn(&events[i], m) {
				turns = append(turns, len(live))
			}
			live = append(live, i)
			continue
		}
		if !rollsBack(events[i]) {
			continue
		}
		if gone == nil {
			gone = map[string]bool{}
		}
		n := min(rolledTurns(events[i].Body.(*eventlog.Custom)), len(turns))
		if n <= 0 {
			continue
		}
		cut, kept := turns[len(turns)-n], len(turns)-n
		for kept > 0 && cut-1 > turns[kept-1] && events[live[cut-1]].Injected() {
			cut--
		}
		for _, k := range live[cut:] {
			gone[events[k].ID] = true
		}
		live, turns = live[:cut], turns[:kept]
	}
	return gone
}

// rolledTurns returns how many turns a record takes back.
func rolledTurns(c *eventlog.Custom) int {
	var rec struct {
		Payload eventMessage `json:"payload"`
	}
	if transcript.Decode([]byte(c.JSON), &rec) != nil {
		return 0
	}
	return rec.Payload.Turns
}

// beginsTurn reports whether a message begins a turn: a human or another agent wrote it.
func beginsTurn(e *eventlog.Event, m *eventlog.Message) bool {
	from := e.Labels[labelItem]
	return m.Role == eventlog.RoleUser && (!e.Injected() || from == agentMessage || from == interAgent)
}
