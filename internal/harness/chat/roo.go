package chat

import (
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// roo has the members that Roo Code adds to a message: whether it is the summary of those before, and the id
// of the summary, or of the truncation, that replaced it.
type roo struct {
	IsSummary bool            `json:"isSummary"`
	IsCut     bool            `json:"isTruncationMarker"`
	Condensed transcript.Word `json:"condenseParent"`
	Truncated transcript.Word `json:"truncationParent"`
}

// gone reports whether Roo Code no longer sends the message.
func (r roo) gone() bool { return r.Condensed != "" || r.Truncated != "" }

// summary makes a compaction of a message that sums up those before it. It kept the messages in staying.
func (c *conversation) summary(entry transcript.Entry, m *message) error {
	blocks, err := content.ChatBlocks(m.Content)
	if err != nil {
		return err
	}
	if m.Sums > 0 {
		c.staying = nil // Crush keeps nothing
	}
	c.session.Boundary(entry, &eventlog.Compaction{
		Summary: strings.Join(transcript.Texts(blocks), "\n\n"), KeptEventIDs: slices.Clone(c.staying), NativeJSON: transcript.Compact(entry.Native),
	})
	return nil
}

// stays adds the messages that m became, from index from on, to staying, unless a summary or a truncation
// replaced m.
func (c *conversation) stays(m *message, from int) {
	for _, e := range c.session.Since(from) {
		if _, ok := e.Body.(*eventlog.Message); ok && !m.gone() && !m.hidden() {
			c.staying = append(c.staying, e.ID)
		}
	}
}
