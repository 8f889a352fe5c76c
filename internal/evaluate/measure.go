package evaluate

import (
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/projection"
)

// Figures are sums over the steps of one or more sessions.
type Figures struct {
	Sessions, Steps int
	// Over counts the prompts above the target, and Refused the steps for which no prompt could be made.
	Over, Refused int
	// Cost is the size of the prompts in bytes, weighted by cachedPrice and freshPrice.
	Cost float64
	// Changes counts the prompts that do not begin with the whole previous prompt.
	Changes int
	// Wanted counts the identifiers that the agent's next calls named and that had occurred in the log.
	// Found of them were in the prompt, Evident of them with the text that surrounded them in the log.
	Wanted, Found, Evident int
	// Lines counts the lines that its next edits had to reproduce and that had occurred in the log; Shown
	// of them were in the prompt.
	Lines, Shown int
	// Calls counts the calls in the log, and Visible those of them that the prompt showed in full, stubbed
	// or in a ledger; both are summed over the steps.
	Calls, Visible int
	// Digests counts the prompts with a digest. DigestTokens is the size of all digests, and SummaryTokens of the
	// summaries in them.
	Digests                     int
	DigestTokens, SummaryTokens uint64
	// Causes count prefix changes by cause, and Reasons count refusals by reason.
	Causes, Reasons map[string]int
}

// NewFigures returns the figures of one session before its first step.
func NewFigures() Figures {
	return Figures{Sessions: 1, Causes: map[string]int{}, Reasons: map[string]int{}}
}

// Refuse counts a step for which no prompt could be made, so that nothing wanted was found.
func (f *Figures) Refuse(st Step, reason string) {
	f.Steps++
	f.Refused++
	f.Reasons[reason]++
	f.Wanted += len(st.Wanted)
	f.Lines += len(st.Lines)
}

// The price of a byte of the prompt: read from the provider's cache, or sent and written to it.
const (
	cachedPrice = 0.1
	freshPrice  = 1.25
)

// Meter measures the successive prompts of one session.
type Meter struct {
	last []byte
	// Sights, if not nil, caches what was found in the prompts of one step, by Prompt.Hash.
	Sights map[string]Sight
}

// Sight counts the wanted identifiers and lines that a prompt has.
type Sight struct{ found, evident, shown int }

// Measure adds the prompt of the session's next step, which should have at most target tokens.
func (m *Meter) Measure(f *Figures, s *Session, st Step, r Prompt, target uint64) {
	f.Steps++
	if r.Tokens > target {
		f.Over++
	}
	common := commonPrefix(m.last, r.JSON)
	f.Cost += cachedPrice*float64(common) + freshPrice*float64(len(r.JSON)-common)
	if common < len(m.last) {
		f.Changes++
		f.Causes[r.Cause]++
	}
	m.last = r.JSON
	f.Calls += st.Calls
	f.Visible += r.Visible
	if r.Digest > 0 {
		f.Digests++
		f.DigestTokens += r.Digest
		f.SummaryTokens += r.Summary
	}
	f.Wanted += len(st.Wanted)
	f.Lines += len(st.Lines)
	seen, ok := m.Sights[r.Hash]
	if !ok {
		seen = look(s, st, r.Text)
		if m.Sights != nil {
			m.Sights[r.Hash] = seen
		}
	}
	f.Found += seen.found
	f.Evident += seen.evident
	f.Shown += seen.shown
}

func look(s *Session, st Step, text string) Sight {
	var out Sight
	for _, name := range st.Wanted {
		recalled, evident := s.present(text, name, st.Before)
		if recalled {
			out.found++
		}
		if evident {
			out.evident++
		}
	}
	for _, line := range st.Lines {
		if shows(text, line) {
			out.shown++
		}
	}
	return out
}

// Measure replays a session under a policy.
func Measure(s *Session, gauge budget.Gauge, p Policy, target uint64) Figures {
	f := NewFigures()
	var m Meter
	l := NewLog(gauge, projection.Options{})
	for _, st := range s.Steps {
		for ; l.next < st.Before; l.next++ {
			l.Append(s.Events[l.next])
		}
		r := p.Render(l)
		if r.Refused != "" {
			f.Refuse(st, r.Refused)
			continue
		}
		m.Measure(&f, s, st, r, target)
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

// Add adds the figures of other sessions.
func (f *Figures) Add(g Figures) {
	f.Sessions += g.Sessions
	f.Steps += g.Steps
	f.Over += g.Over
	f.Refused += g.Refused
	f.Cost += g.Cost
	f.Changes += g.Changes
	f.Wanted += g.Wanted
	f.Found += g.Found
	f.Evident += g.Evident
	f.Lines += g.Lines
	f.Shown += g.Shown
	f.Calls += g.Calls
	f.Visible += g.Visible
	f.Digests += g.Digests
	f.DigestTokens += g.DigestTokens
	f.SummaryTokens += g.SummaryTokens
	addCounts(&f.Causes, g.Causes)
	addCounts(&f.Reasons, g.Reasons)
}

func addCounts(to *map[string]int, from map[string]int) {
	if *to == nil {
		*to = map[string]int{}
	}
	for k, n := range from {
		(*to)[k] += n
	}
}
