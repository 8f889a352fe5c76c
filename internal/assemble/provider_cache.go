package assemble

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/contextd/contextd/internal/render"
)

// breakpoints returns the messages after which the provider's cache should be marked: ascending, and at most four,
// which is Anthropic's limit. They are the system prompt, the digest, the last message shared with the projection
// before (to read what that one cached), and the last message that the next context will have (to be read by that
// one). While the prefix stays the same, no breakpoint moves back. docs/caching.md has the calculation.
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
	out := make([]Breakpoint, 0, len(at))
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

// summaryAt returns the index of the digest, or -1.
func summaryAt(messages []Message) int {
	for i := range messages {
		if messages[i].Digest {
			return i
		}
	}
	return -1
}

// promptCacheKey returns the same key for all requests of a session. The key reveals nothing of the session.
func promptCacheKey(namespace, sessionID string) string {
	if namespace != "" {
		sessionID = namespace + "\x00" + sessionID // session ids contain no NUL
	}
	sum := sha256.Sum256([]byte("prompt_cache_key\x00" + sessionID))
	return "contextd-" + hex.EncodeToString(sum[:8])
}

// cacheHints fills in breakpoints and cache key, where the format has them. It needs all messages: call it
// before skip.
func (c *Context) cacheHints(namespace string) {
	f, ok := render.FormatNamed(c.Projection.Budget.Format)
	if ok && f.Breakpoints {
		c.Breakpoints = breakpoints(c.Messages, c.Cache)
	}
	if ok && f.PromptCacheKey {
		c.PromptCacheKey = promptCacheKey(namespace, c.SessionID)
	}
}

// Breakpoint is a place for a mark of the provider's cache.
type Breakpoint struct {
	// Message is the index in the whole context.
	Message int
	// Item is the index in the message's content of the last item that will be there next time; nil is the
	// message's last item.
	Item *int
}
