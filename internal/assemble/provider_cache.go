package assemble

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/render"
)

// breakpoints are where the provider's cache should be marked, ascending and at most four,
// which is what Anthropic takes: after the system prompt, after the digest, at the end of
// what the projection before shares with this one, so that what that one wrote is read, and
// at the last message that will be there next time, so that the next request can read it.
// As long as the prefix is the same, none of them moves back. docs/caching.md does the sums.
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

// summaryAt is the index of the digest, or -1.
func summaryAt(messages []Message) int {
	for i := range messages {
		if messages[i].Digest {
			return i
		}
	}
	return -1
}

// promptCacheKey is the same for all requests of a session, and reveals nothing of it.
func promptCacheKey(namespace, sessionID string) string {
	if namespace != "" {
		sessionID = namespace + "\x00" + sessionID // which no id holds
	}
	sum := sha256.Sum256([]byte("prompt_cache_key\x00" + sessionID))
	return "contextd-" + hex.EncodeToString(sum[:8])
}

// cacheHints fills in what helps the provider's cache, as the format has it. Nothing
// may be skipped yet.
func (c *Context) cacheHints(namespace string) {
	f, ok := render.FormatNamed(c.Projection.Budget.Format)
	if ok && f.Breakpoints {
		c.Breakpoints = breakpoints(c.Messages, c.Cache)
	}
	if ok && f.PromptCacheKey {
		c.PromptCacheKey = promptCacheKey(namespace, c.SessionID)
	}
}

// compare says how much of the projection recorded before is unchanged. Where that is not
// the one in memory it is computed again from its record.
func (e *Engine) compare(ctx context.Context, s *session, now encoding, record records.Projection) (CacheReport, error) {
	if record.Previous == "" {
		return CacheReport{}, nil
	}
	last, ok := s.last.get(record.Stream())
	if !ok || last.record.ID != record.Previous {
		r, err := records.Get(ctx, e.store, s.id, record.Previous)
		if err != nil {
			return CacheReport{}, err
		}
		if last, err = e.encodeAgain(ctx, s, r); err != nil {
			return CacheReport{}, err
		}
	}
	return last.compare(now), nil
}

// encodeAgain computes the messages of a recorded projection.
func (e *Engine) encodeAgain(ctx context.Context, s *session, r records.Projection) (lastProjection, error) {
	f, err := format(r)
	if err != nil {
		return lastProjection{}, err
	}
	p, err := e.recompute(ctx, s, r, r.Fingerprint)
	if err != nil {
		return lastProjection{}, err
	}
	scratch := &session{id: s.id}
	scratch.reset()
	return lastProjection{record: r, messages: scratch.encode(p, f).messages}, ctx.Err()
}

// compare says how much of a projection is unchanged in one after it.
func (p lastProjection) compare(after encoding) CacheReport {
	old, now, same, c := p.messages, after.messages, 0, CacheReport{}
	if p.layout == after.layout && p.body <= after.body {
		same, c.StableTokens = p.body, p.tokens
	}
	c.StableMessages = same + common(old[same:], now[same:])
	for i := same; i < c.StableMessages; i++ {
		c.StableTokens += now[i].Tokens
	}
	// Reminders are expected to give way to what was said since.
	end := len(old)
	for end > 0 && old[end-1].Passing {
		end--
	}
	if c.StableMessages < end {
		c.BrokenBy = breaker(now, c.StableMessages)
	}
	return c
}

// breaker is what rewrote the message at a place: a reducer, a policy or "log".
func breaker(now []Message, at int) string {
	if at < len(now) && now[at].Cause != "" {
		return now[at].Cause
	}
	return causeLog
}

// CacheReport compares with the projection recorded before.
type CacheReport struct {
	StableMessages int
	StableTokens   uint64
	// BrokenBy is the reducer that rewrote the first differing message, "log" if a
	// late result did; empty if the old prefix is unchanged.
	BrokenBy string
}

// Breakpoint is a place for a mark of the provider's cache.
type Breakpoint struct {
	// Message is the index in the whole context.
	Message int
	// Item is that of its content where what follows will not be there next time; nil is
	// the last.
	Item *int
}
