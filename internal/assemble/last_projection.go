package assemble

import (
	"context"

	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
)

// lastProjection is what was sent last in a stream of a session.
type lastProjection struct {
	record   records.Projection
	messages []Message
	// layout is that of the messages; the first body of them, which take so many tokens and
	// bytes, are in whatever grows from it.
	layout, body int
	tokens       uint64
	bytes        int
}

// lastReport serves estimates for appends.
type lastReport struct {
	record records.Projection
	raw    uint64
}

// CacheReport compares with the projection recorded before.
type CacheReport struct {
	StableMessages int
	StableTokens   uint64
	// BrokenBy is the reducer that rewrote the first differing message, "log" if a
	// late result did; empty if the old prefix is unchanged.
	BrokenBy string
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

// remember keeps what was recorded, for the next comparison and for estimates. What
// is in s.last is the newest record of its kind: nothing can come after the head,
// or after what was the newest before.
func (s *session) remember(r records.Projection, e encoding, conv *reduce.Conversation) {
	if old, ok := s.last.get(r.Stream()); r.AsOf == s.head || ok && old.record.AsOf <= r.AsOf {
		now := old.after(r, e)
		s.last.put(r.Stream(), now, now.bytes+recordBytes(r))
	}
	s.report = &lastReport{r, conv.Tokens()}
}

// messageOverhead is what a message takes beside its bytes.
const messageOverhead = 256

// after is what is kept of the messages of a projection that is recorded after this one: only what
// later ones are compared with, so that they keep no conversation in memory.
func (p lastProjection) after(r records.Projection, e encoding) lastProjection {
	now := lastProjection{record: r, layout: e.layout, body: e.body}
	if e.layout == p.layout && p.body <= e.body && p.body > 0 {
		now.messages, now.tokens, now.bytes = p.messages[:p.body], p.tokens, p.bytes
	}
	for i := len(now.messages); i < len(e.messages); i++ {
		m := &e.messages[i]
		now.messages = append(now.messages, Message{JSON: m.JSON, Passing: m.Passing})
		if i < e.body {
			now.tokens += m.Tokens
			now.bytes += len(m.JSON) + messageOverhead
		}
	}
	return now
}

// recordBytes is what of a record may be large.
func recordBytes(r records.Projection) int {
	n := 64*(len(r.Pointers)+len(r.Steps)) + len(r.Projection.Summary) + len(r.Projection.Expression)
	for _, root := range r.RootsConsulted {
		n += len(root)
	}
	return n
}
