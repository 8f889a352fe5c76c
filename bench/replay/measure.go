package main

import (
	"maps"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/reduce"
)

// figures are sums over the steps of one or more sessions.
type figures struct {
	sessions, steps, over, refused int
	cost                           float64 // bytes at cache prices
	changes                        int     // of the prefix
	wanted, found, evident         int     // identifiers
	lines, shown                   int     // that edits must reproduce
	calls, visible                 int
	causes, reasons, faults        map[string]int
	examples                       map[string]string // of each fault, the first
}

func newFigures() figures {
	return figures{sessions: 1, causes: map[string]int{}, reasons: map[string]int{}, faults: map[string]int{}, examples: map[string]string{}}
}

// fault counts a broken rule; example is one place where it broke.
func (f *figures) fault(what, example string) {
	f.faults[what]++
	if f.examples[what] == "" {
		f.examples[what] = example
	}
}

// refuse counts a step without a context: nothing of what was wanted was there.
func (f *figures) refuse(st step, reason string) {
	f.steps++
	f.refused++
	f.reasons[reason]++
	f.wanted += len(st.wanted)
	f.lines += len(st.lines)
}

// What a byte of the prompt costs: read from the provider's cache, and sent again.
const (
	cachedPrice = 0.1
	freshPrice  = 1.25
)

// meter measures the successive prompts of one session.
type meter struct {
	last []byte
	// sights, if not nil, keeps what was found in contexts of the same step, by their
	// hash.
	sights map[string]sight
}

// sight is how many of the identifiers and lines that were wanted a context holds.
type sight struct{ found, evident, shown int }

func (m *meter) measure(f *figures, s *session, st step, r rendered, target uint64) {
	f.steps++
	if r.tokens > target {
		f.over++
	}
	common := commonPrefix(m.last, r.json)
	f.cost += cachedPrice*float64(common) + freshPrice*float64(len(r.json)-common)
	if common < len(m.last) {
		f.changes++
		f.causes[r.cause]++
	}
	m.last = r.json
	f.calls += st.calls
	f.visible += r.visible
	f.wanted += len(st.wanted)
	f.lines += len(st.lines)
	seen, ok := m.sights[r.hash]
	if !ok {
		seen = look(s, st, r.text)
		if m.sights != nil {
			m.sights[r.hash] = seen
		}
	}
	f.found += seen.found
	f.evident += seen.evident
	f.shown += seen.shown
}

func look(s *session, st step, text string) sight {
	var out sight
	for _, name := range st.wanted {
		recalled, evident := s.present(text, name, st.before)
		if recalled {
			out.found++
		}
		if evident {
			out.evident++
		}
	}
	for _, line := range st.lines {
		if shows(text, line) {
			out.shown++
		}
	}
	return out
}

// measureLocal replays a session under a policy that needs no daemon.
func measureLocal(s *session, gauge budget.Accountant, p policy, target uint64) figures {
	f := newFigures()
	var m meter
	conv := reduce.NewConversation(gauge)
	next := 0
	for _, st := range s.steps {
		for ; next < st.before; next++ {
			conv.Append(s.events[next])
		}
		r := p.render(conv)
		if r.refused != "" {
			f.refuse(st, r.refused)
			continue
		}
		m.measure(&f, s, st, r, target)
	}
	return f
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func (f *figures) add(g figures) {
	f.sessions += g.sessions
	f.steps += g.steps
	f.over += g.over
	f.refused += g.refused
	f.cost += g.cost
	f.changes += g.changes
	f.wanted += g.wanted
	f.found += g.found
	f.evident += g.evident
	f.lines += g.lines
	f.shown += g.shown
	f.calls += g.calls
	f.visible += g.visible
	if f.causes == nil {
		f.causes, f.reasons, f.faults, f.examples = map[string]int{}, map[string]int{}, map[string]int{}, map[string]string{}
	}
	for into, from := range map[*map[string]int]map[string]int{&f.causes: g.causes, &f.reasons: g.reasons, &f.faults: g.faults} {
		for k, n := range maps.All(from) {
			(*into)[k] += n
		}
	}
	for kind, example := range g.examples {
		if f.examples[kind] == "" {
			f.examples[kind] = example
		}
	}
}
