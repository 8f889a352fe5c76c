package assemble

import (
	"context"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
)

// lastProjection is the newest projection of a stream, kept so that the next one can be compared with it.
type lastProjection struct {
	record   records.Projection
	messages []Message
	// layout is the id of the layout of the messages. The first body messages, which take tokens and bytes,
	// are the same in every later projection of that layout.
	layout, body int
	tokens       uint64
	bytes        int
}

// lastReport is the basis of Estimate: the newest record, and the tokens of the whole log at that time.
type lastReport struct {
	record records.Projection
	raw    uint64
}

// CacheReport compares a projection with the one recorded before it in its stream.
type CacheReport struct {
	StableMessages int
	StableTokens   uint64
	// BrokenBy is the reducer that rewrote the first differing message, "log" if a
	// late result did; empty if the old prefix is unchanged.
	BrokenBy string
	// AsOf and Shows are the event and the hash of the projection before; zero if there is none. Whole says
	// that all its messages are unchanged, its reminders and injections too.
	AsOf  eventlog.Seq
	Shows string
	Whole bool
}

// compare reports how much of the projection recorded before is unchanged. If that one is not in memory, it
// is computed from its record.
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

// compare reports how many leading messages of p are unchanged in a later projection of its stream.
func (p lastProjection) compare(after encoding) CacheReport {
	old, now, same, c := p.messages, after.messages, 0, CacheReport{AsOf: p.record.AsOf, Shows: p.record.Shows()}
	if p.layout == after.layout && p.body <= after.body {
		same, c.StableTokens = p.body, p.tokens
	}
	c.StableMessages = same + common(old[same:], now[same:])
	for i := same; i < c.StableMessages; i++ {
		c.StableTokens += now[i].Tokens
	}
	// Reminders at the end were expected to disappear: that is no break.
	end := len(old)
	for end > 0 && old[end-1].Passing {
		end--
	}
	if c.StableMessages < end {
		c.BrokenBy = breaker(now, c.StableMessages)
	}
	c.Whole = c.StableMessages == len(old) && p.record.Injected == 0
	return c
}

// breaker names what rewrote message at: a reducer, a policy or "log".
func breaker(now []Message, at int) string {
	if at < len(now) && now[at].Cause != "" {
		return now[at].Cause
	}
	return causeLog
}

// remember keeps a recorded projection for the next comparison and for estimates. s.last holds the newest
// record of each stream, so an older one (of an earlier event) replaces nothing.
func (s *session) remember(r records.Projection, e encoding, conv *reduce.Conversation) {
	if old, ok := s.last.get(r.Stream()); r.AsOf == s.head || ok && old.record.AsOf <= r.AsOf {
		now := old.after(r, e)
		s.last.put(r.Stream(), now, now.bytes+recordBytes(r))
	}
	s.report = &lastReport{r, conv.Tokens()}
}

// messageOverhead is what a message takes in memory in addition to its JSON, in bytes.
const messageOverhead = 256

// after returns what is kept of the projection recorded after p. It keeps only the bytes that later
// projections are compared with, and so holds no conversation in memory. The messages that both share are
// not copied.
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

// recordBytes estimates the bytes of those parts of a record that may be large.
func recordBytes(r records.Projection) int {
	n := 64*(len(r.Pointers)+len(r.Steps)) + len(r.Projection.Summary) + len(r.Projection.Expression)
	for _, root := range r.RootsConsulted {
		n += len(root)
	}
	return n
}
