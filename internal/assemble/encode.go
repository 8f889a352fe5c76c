package assemble

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
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

// encoding is a projection in a format: its messages, and the fragments that injections
// may join.
type encoding struct {
	format    *render.Format
	fragments []render.Fragment
	messages  []Message
}

// encode lays a projection out in a format, reusing the fragments of groups that are
// unchanged.
func (s *session) encode(p decide.Projected, f *render.Format) encoding {
	v := p.Result.View
	key := f.Name + "\n" + string(v.Recall())
	before, _ := s.encoded.get(key)
	next := make(map[*reduce.Group]encodedGroup, v.Len())
	digest, at := v.Digest()
	out := make([]render.Fragment, 0, v.Len()+len(p.Reminders)+1)
	for i := range v.Len() {
		if v.Ended() != nil {
			return encoding{format: f} // who called looks, too
		}
		if i == at && digest.Through > 0 {
			out = append(out, f.Fragments(render.DigestMessage(digest))...)
		}
		g := v.Group(i)
		kept, ok := before[g]
		if !ok || kept.dropped != v.Dropped(i) || !slices.Equal(kept.edits, v.Edits(i)) {
			kept = encodedGroup{edits: v.Edits(i), dropped: v.Dropped(i)}
			for _, m := range render.GroupMessages(v, i) {
				kept.fragments = append(kept.fragments, f.Fragments(m)...)
			}
		}
		next[g] = kept
		out = append(out, kept.fragments...)
	}
	if at == v.Len() && digest.Through > 0 {
		out = append(out, f.Fragments(render.DigestMessage(digest))...)
	}
	for _, r := range p.Reminders {
		out = append(out, f.Fragments(render.ReminderMessage(r))...)
	}
	for i := range s.convs.entries {
		if p.Conversation == s.convs.entries[i].value {
			s.encoded.put(key, next, fragmentsBytes(out))
		}
	}
	return encoding{f, out, f.Join(out)}
}

func fragmentsBytes(all []render.Fragment) (n int) {
	for i := range all {
		n += len(all[i].JSON) + len(all[i].Elsewhere) + messageOverhead
	}
	return n
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
func injections(gauge budget.Accountant, b budget.Budget, all []render.Injection) ([]render.Message, error) {
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
