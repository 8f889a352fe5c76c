package pi

import "github.com/contextd/contextd/internal/harness/transcript"

// notKept is what a session file written again may lack.
var notKept = []transcript.NotKept{
	{Entry: "message", Field: "message.details", Reason: "what the tool tells the user: diffs and outputs once more; kept up to 1 KiB, where extensions have their state"},
	{Entry: "message", Field: "message.content[].partialJson", Reason: "left over from streaming; the arguments say the same"},
}

// detailsKept is how many bytes of a result's details are kept.
const detailsKept = 1 << 10

// prune leaves out of an entry what is not kept of it.
func prune(native []byte, m *message) []byte {
	if m == nil {
		return native
	}
	if len(m.Details) > detailsKept {
		native = transcript.Prune(native, notKept[:1], "message")
	}
	if m.Role == "assistant" && partial(native) {
		native = transcript.Prune(native, notKept[1:], "message")
	}
	return native
}
