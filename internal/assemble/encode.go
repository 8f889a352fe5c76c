package assemble

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/render"
)

// format is the one that a record's messages are encoded in.
func format(r records.Projection) (*render.Format, error) {
	f, ok := render.FormatNamed(r.Budget.Format)
	if !ok {
		return nil, fmt.Errorf("projection record %s: no format %q", r.ID, r.Budget.Format)
	}
	return f, nil
}

// encoding is a projection in a format: its messages, their hash, and the fragments that
// injections may join.
type encoding struct {
	format    *render.Format
	fragments []render.Fragment
	messages  []Message
	hash      string
	// tiers are the tokens of the view by tier.
	tiers map[budget.Tier]uint64
	// layout identifies what the messages were laid out in, and body are how many leading ones
	// another projection in the same has, too, if it comes later; 0 is none.
	layout, body int
}

// encode lays a projection out in a format. Of a view that grew from the one laid out before,
// only what is new is laid out.
func (s *session) encode(p decide.Projected, f *render.Format) encoding {
	v := p.Result.View
	key := f.Name + "\n" + string(v.Recall())
	l, ok := s.encoded.get(key)
	if !ok || !l.grows(v) {
		s.layouts++
		l = l.renewed(v, s.layouts)
	}
	if !l.take(f, v) {
		s.encoded.keep(0)          // it is laid out in part
		return encoding{format: f} // who called looks, too
	}
	if n := f.Described(l.fragments); n != l.described {
		s.layouts++
		l.rewritten(s.layouts, n)
	}
	for i := range s.convs.entries {
		if p.Conversation == s.convs.entries[i].value {
			s.encoded.put(key, l, l.bytes)
		}
	}
	return l.encoding(f, p.Reminders)
}

// with is the encoding with injections after it: all messages, and how many of the leading
// ones are the same without them.
func (e encoding) with(injected []render.Message) (all []Message, same int) {
	if len(injected) == 0 {
		return e.messages, len(e.messages)
	}
	fragments := slices.Clip(e.fragments)
	for _, m := range injected {
		fragments = append(fragments, e.format.Fragments(m)...)
	}
	all = e.format.Join(fragments)
	return all, common(e.messages, all)
}

// common is how many leading messages have the same bytes.
func common(a, b []Message) int {
	n := 0
	for n < min(len(a), len(b)) && bytes.Equal(a[n].JSON, b[n].JSON) {
		n++
	}
	return n
}

// hashOf is the prefix hash of messages.
func hashOf(messages []Message) string {
	h := records.NewHasher()
	for i := range messages {
		h.Add(messages[i].JSON)
	}
	return h.Sum()
}

// injections checks what the runtime adds against the reserves and lays it out.
func injections(gauge budget.Gauge, b budget.Budget, all []render.Injection) ([]render.Message, error) {
	var out []render.Message
	var sum uint64
	for _, in := range all {
		tokens := uint64(budget.MessageOverhead)
		for _, block := range in.Blocks {
			tokens += gauge.Block(block)
		}
		if in.ReserveTokens > 0 && tokens > in.ReserveTokens {
			return nil, &InjectionError{in.Name, tokens, in.ReserveTokens}
		}
		if sum += tokens; sum > b.InjectionReserve {
			return nil, &InjectionError{in.Name, tokens, b.InjectionReserve - min(sum-tokens, b.InjectionReserve)}
		}
		out = append(out, render.InjectionMessage(in, tokens))
	}
	return out, nil
}
