package pi

import "github.com/contextd/contextd/internal/harness/transcript"

// notKept is what a session file written again may lack.
var notKept = []transcript.NotKept{
	{Entry: "message", Field: "message.details", Reason: "what the tool shows the user: diffs and outputs once more; kept up to 1 KiB, where extensions have their state"},
	{Entry: "message", Field: "message.content[].partialJson", Reason: "left over from streaming; the arguments say the same"},
}

// detailsKept is how many bytes of a result's details are kept.
const detailsKept = 1 << 10

// left are the fields of a message that are not kept.
func (m *message) left() []transcript.NotKept {
	from, to := 1, 1
	if m != nil && len(m.Details) > detailsKept {
		from = 0
	}
	if m != nil && m.Role == "assistant" {
		to = 2
	}
	return notKept[from:to]
}
