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

// format returns the provider format of a record's messages.
func format(r records.Projection) (*render.Format, error) {
	f, ok := render.FormatNamed(r.Budget.Format)
	if !ok {
		return nil, fmt.Errorf("projection record %s: no format %q", r.ID, r.Budget.Format)
	}
	return f, nil
}

// encoding is a projection in a provider's format: its messages, their hash, and the fragments that they
// are made of, which injections may be joined to.
type encoding struct {
	format    *render.Format
	fragments []render.Fragment
	messages  []Message
	hash      string
	// tiers are the tokens of the view by tier.
	tiers map[budget.Tier]uint64
	// layout is the id of the layout that made the messages. The first body of them are the same in every
	// later projection of that layout; 0 is none.
	layout, body int
}

// encode lays a projection out in a format. If its view grew from the one laid out before, only the new
// groups are laid out.
func (s *session) encode(p decide.Projected, f *render.Format) encoding {
	v := p.Result.View
	key := f.Name + "\n" + string(v.Recall())
	if v.ReturnsReasoning() {
		key += "\nreturning"
	}
	if f.ByModel {
		key += "\n" + v.Asked()
	}
	l, ok := s.encoded.get(key)
	if !ok || !l.grows(v) {
		s.layouts++
		l = l.renewed(v, s.layouts)
	}
	if !l.layOut(f, v) {
		s.encoded.keep(0)          // drop it: layOut stopped halfway
		return encoding{format: f} // the caller checks its context's error
	}
	n := f.Described(l.fragments, l.ended)
	if v.Ended() != nil {
		return encoding{format: f}
	}
	if n != l.described {
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

// with puts injections after the encoding. It returns all messages, and how many leading ones are the same
// as without the injections.
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

// common counts the leading messages that have the same bytes in a and b.
func common(a, b []Message) int {
	n := 0
	for n < min(len(a), len(b)) && bytes.Equal(a[n].JSON, b[n].JSON) {
		n++
	}
	return n
}

// hashOf returns the prefix hash of messages.
func hashOf(messages []Message) string {
	h := records.NewHasher()
	for i := range messages {
		h.Add(messages[i].JSON)
	}
	return h.Sum()
}

// injections lays out the runtime's injections, and refuses those that exceed a reserve.
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
