package opencode

import (
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// whole returns the message that the reader kept unchanged, if the events are
// one: then what else was made of it says nothing more.
func whole(events []eventlog.Event) string {
	for _, e := range events {
		c, ok := e.Body.(*eventlog.Custom)
		if !ok || !strings.HasPrefix(c.Type, Name+".") || strings.HasPrefix(c.Type, Name+".part-") {
			continue
		}
		_, info := transcript.MemberOf([]byte(c.JSON), "info")
		_, parts := transcript.MemberOf([]byte(c.JSON), "parts")
		if (info || parts) && transcript.Valid([]byte(c.JSON)) {
			return c.JSON
		}
	}
	return ""
}

// span is how many events from the first one on are one message: parts of what was
// one in a file, or of one reply. Results are in the parts of their calls,
// wherever they are.
func span(events []eventlog.Event, envelopes transcript.Envelopes) int {
	key := messageID(events[0].ID)
	group, replied, asked := "", false, false
	n := 0
	for i := range events {
		mine := messageID(events[i].ID) == key
		switch b := events[i].Body.(type) {
		case *eventlog.Message:
			switch {
			case b.Role == eventlog.RoleTool:
				if mine {
					n = i + 1
				}
				continue // it may be among the parts of a reply
			case b.Role == eventlog.RoleAssistant:
				if asked || (n > 0 && !mine && (b.GroupID == "" || b.GroupID != group)) {
					return n
				}
				group, replied = b.GroupID, true
			default:
				if replied || asked || (n > 0 && !mine) {
					return n
				}
				asked = true
			}
			n = i + 1
		case *eventlog.Custom:
			if n > 0 && !mine && !envelopes.Holds(b) {
				return n
			}
			if mine {
				n = i + 1
			}
		default:
			return max(n, 1)
		}
	}
	return max(n, 1)
}
