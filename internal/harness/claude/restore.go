package claude

import (
	"slices"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// restorer undoes what a writer did to calls that the API would refuse.
type restorer struct{ calls map[string]string }

// restore gives the calls and results among the blocks their own ids and arguments
// back.
func (r *restorer) restore(n *notes, blocks []eventlog.Block) {
	if n != nil {
		for written, id := range n.Calls {
			if r.calls == nil {
				r.calls = map[string]string{}
			}
			if id != "" {
				r.calls[written] = id
			}
		}
	}
	for i, b := range blocks {
		switch b := b.(type) {
		case eventlog.ToolCall:
			if n != nil && slices.Contains(n.Wrapped, b.CallID) {
				b.Arguments = transcript.UnwrapArguments(b.Arguments)
			} else if n != nil && transcript.Compact([]byte(n.Spaced[b.CallID])) == b.Arguments {
				b.Arguments = n.Spaced[b.CallID]
			}
			b.CallID = r.own(b.CallID)
			blocks[i] = b
		case eventlog.ToolResult:
			b.CallID = r.own(b.CallID)
			blocks[i] = b
		}
	}
}

func (r *restorer) own(id string) string {
	if own := r.calls[id]; own != "" {
		return own
	}
	return id
}
