package chat

import (
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// roo is what Roo Code says of a message beside it: whether it sums up those before, and which
// summary, or which cut, took the place of it.
type roo struct {
	IsSummary bool            `json:"isSummary"`
	IsCut     bool            `json:"isTruncationMarker"`
	Condensed transcript.Word `json:"condenseParent"`
	Truncated transcript.Word `json:"truncationParent"`
}

// gone reports whether the message is not sent any more.
func (r roo) gone() bool { return r.Condensed != "" || r.Truncated != "" }

// summary makes a compaction of a message that sums up those before it, of which some stay.
func (c *conversation) summary(entry transcript.Entry, m *message) error {
	blocks, err := content.ChatBlocks(m.Content)
	if err != nil {
		return err
	}
	c.session.Boundary(entry, &eventlog.Compaction{
		Summary: strings.Join(transcript.Texts(blocks), "\n\n"), KeptEventIDs: slices.Clone(c.staying), NativeJSON: transcript.Compact(entry.Native),
	})
	return nil
}

// stays takes note of the events of a message, from a position on, that no summary replaced.
func (c *conversation) stays(m *message, from int) {
	for _, e := range c.session.Since(from) {
		if _, ok := e.Body.(*eventlog.Message); ok && !m.gone() {
			c.staying = append(c.staying, e.ID)
		}
	}
}
