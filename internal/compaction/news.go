package compaction

import (
	"sync"

	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
)

// News tracks the spans of which a summary is being made ahead of need, and announces the state of circuit
// breakers. It is a summarize.Observer. Its methods may be called from any goroutine.
type News struct {
	journal *lifecycle.Journal

	mu     sync.Mutex
	closed bool
	// ahead has, for each session, the last event of the span about which hooks are being asked or of which
	// a summary is being made ahead of need. refused has that of the span that hooks vetoed last.
	ahead   map[life]eventlog.Seq
	refused map[life]eventlog.Seq
}

// life is a session from its creation to its deletion.
type life struct {
	sessionID string
	of        eventlog.Incarnation
}

func lifeOf(p summarize.Proposal) life { return life{p.SessionID, p.Of} }

// NewNews returns News that announces breakers by a journal.
func NewNews(journal *lifecycle.Journal) *News {
	return &News{journal: journal, ahead: map[life]eventlog.Seq{}, refused: map[life]eventlog.Seq{}}
}

// begin calls start, whose work must end with a call of ended. It does not call it
//   - if a summary for the session is being made, because each turn may propose a span that mostly overlaps the last
//     one;
//   - if a hook vetoed a span and too little is new since then (fresh);
//   - if the summarizer is resting.
//
// It returns the last event of the span of which a summary is being made; 0 if there is none.
func (n *News) begin(p summarize.Proposal, fresh eventlog.Seq, resting bool, start func()) eventlog.Seq {
	n.mu.Lock()
	defer n.mu.Unlock()
	if through, ok := n.ahead[lifeOf(p)]; ok {
		return through
	}
	if n.closed || resting || n.refused[lifeOf(p)] > fresh {
		return 0
	}
	n.ahead[lifeOf(p)] = p.To
	start()
	return p.To
}

// ended allows the next proposal for the session. Call it before anybody is notified of the end, since they
// may propose at once.
func (n *News) ended(p summarize.Proposal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ahead[lifeOf(p)] == p.To {
		delete(n.ahead, lifeOf(p))
	}
}

// maxRefused bounds how many vetoes are remembered. After a veto is forgotten, hooks are asked again.
const maxRefused = 10_000

// refuse remembers a veto.
func (n *News) refuse(p summarize.Proposal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.refused) >= maxRefused {
		clear(n.refused)
	}
	n.refused[lifeOf(p)] = p.To
}

// close prevents any further begin.
func (n *News) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
}

// forget drops the state of a deleted session.
func (n *News) forget(l life) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ahead, l)
	delete(n.refused, l)
}

// SummaryStarted implements summarize.Observer.
func (n *News) SummaryStarted(summarize.Proposal) {}

// SummaryReady implements summarize.Observer.
func (n *News) SummaryReady(p summarize.Proposal, _ summarize.Summary) { n.ended(p) }

// SummaryFailed implements summarize.Observer.
func (n *News) SummaryFailed(p summarize.Proposal, _ string) { n.ended(p) }

// BreakerChanged implements summarize.Observer.
func (n *News) BreakerChanged(summarizer string, s summarize.BreakerState) {
	what := map[summarize.Health]lifecycle.Type{
		summarize.Open: lifecycle.BreakerOpen, summarize.HalfOpen: lifecycle.BreakerHalfOpen, summarize.Closed: lifecycle.BreakerClosed,
	}[s.Health]
	n.journal.Announce(lifecycle.Happened(what, lifecycle.AttributeSummarizer, summarizer))
}
