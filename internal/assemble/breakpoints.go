package assemble

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/contextd/contextd/internal/render"
)

// maxBreakpoints is how many marks Anthropic takes in a request.
const maxBreakpoints = 4

// breakpoints are where the provider's cache should be marked, ascending: behind the
// system prompt, behind what stands for the run that left, at the end of what stood in
// the projection before, so that what that one wrote is read, and at the last message
// that will be there next time, so that the next request can read it. As long as the
// prefix stands, none of them moves back. docs/caching.md does the sums.
func breakpoints(messages []Message, c CacheReport) []Breakpoint {
	var at []int
	mark := func(i int) {
		if i >= 0 && (len(at) == 0 || i > at[len(at)-1]) {
			at = append(at, i)
		}
	}
	if len(messages) > 0 && messages[0].System {
		mark(0)
	}
	last := len(messages) - 1
	for last >= 0 && messages[last].Passing && messages[last].Lasting == 0 {
		last--
	}
	mark(min(summaryAt(messages), last))
	mark(min(c.StableMessages-1, last))
	mark(last)
	out := make([]Breakpoint, 0, maxBreakpoints)
	for _, i := range at {
		b := Breakpoint{Message: i}
		if messages[i].Passing {
			item := messages[i].Lasting - 1
			b.Item = &item
		}
		out = append(out, b)
	}
	return out
}

// summaryAt is the message that stands for the run that left, or -1.
func summaryAt(messages []Message) int {
	for i := range messages {
		if messages[i].Digest {
			return i
		}
	}
	return -1
}

// promptCacheKey is the same for all requests of a session, and tells nothing of it.
func promptCacheKey(sessionID string) string {
	sum := sha256.Sum256([]byte("prompt_cache_key\x00" + sessionID))
	return "contextd-" + hex.EncodeToString(sum[:8])
}

// cacheHints fills in what helps the provider's cache, as the format has it. Nothing
// may be skipped yet.
func (c *Context) cacheHints() {
	switch c.Projection.Budget.Format {
	case render.NameAnthropic:
		c.Breakpoints = breakpoints(c.Messages, c.Cache)
	case render.NameOpenAIChat, render.NameOpenAIResponses:
		c.PromptCacheKey = promptCacheKey(c.SessionID)
	}
}
