package compaction

import (
	"strconv"
	"sync"
	"time"

	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
)

// News notifies the watchers of sessions of what happens to them, and knows of which spans
// a summary is being made ahead of need. It is a summarize.Observer. Its methods may be
// called from any goroutine.
type News struct {
	bus   *lifecycle.Bus
	clock func() time.Time

	mu     sync.Mutex
	closed bool
	// ahead is the last event of the span, by session, of which a summary is being asked
	// about or made ahead of need, and refused that of the span that was vetoed last.
	ahead   map[life]eventlog.Seq
	refused map[life]eventlog.Seq
}

// life is a session from its creation to its deletion.
type life struct {
	sessionID string
	of        eventlog.Incarnation
}

func lifeOf(p summarize.Proposal) life { return life{p.SessionID, p.Of} }

// NewNews returns News that is published on a bus, dated by a clock.
func NewNews(bus *lifecycle.Bus, clock func() time.Time) *News {
	return &News{bus: bus, clock: clock, ahead: map[life]eventlog.Seq{}, refused: map[life]eventlog.Seq{}}
}

// begin calls start, which calls ended in the end, unless a span of the session is being
// made or asked about already, since each turn may propose another that holds most of the
// one before, or too little is new since one was refused, or it has a summarizer that is
// resting. It returns the last event of the session's span; 0 if there is none.
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

// ended lets the next span of the session be proposed. It comes before anybody is notified:
// who hears of the end may propose at once.
func (n *News) ended(p summarize.Proposal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ahead[lifeOf(p)] == p.To {
		delete(n.ahead, lifeOf(p))
	}
}

// maxRefused bounds how many sessions' vetoes are remembered; a forgotten one is asked
// about once more.
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

// close has nothing begin any more.
func (n *News) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
}

// forget ends what is known of a session that was deleted.
func (n *News) forget(l life) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ahead, l)
	delete(n.refused, l)
}

// SummaryStarted implements summarize.Observer.
func (n *News) SummaryStarted(p summarize.Proposal) {
	n.publish(p.SessionID, lifecycle.SummaryStarted, span(p)...)
}

// SummaryReady implements summarize.Observer.
func (n *News) SummaryReady(p summarize.Proposal, s summarize.Summary) {
	n.ended(p)
	n.publish(p.SessionID, lifecycle.SummaryReady, append(span(p), lifecycle.AttributeSummaryID, s.ID)...)
}

// SummaryFailed implements summarize.Observer.
func (n *News) SummaryFailed(p summarize.Proposal, reason string) {
	n.ended(p)
	n.publish(p.SessionID, lifecycle.SummaryFailed, append(span(p), lifecycle.AttributeReason, reason)...)
}

// BreakerChanged implements summarize.Observer.
func (n *News) BreakerChanged(summarizer string, s summarize.BreakerState) {
	what := map[summarize.Health]lifecycle.Type{
		summarize.Open: lifecycle.BreakerOpen, summarize.HalfOpen: lifecycle.BreakerHalfOpen, summarize.Closed: lifecycle.BreakerClosed,
	}[s.Health]
	n.publish("", what, lifecycle.AttributeSummarizer, summarizer)
}

func span(p summarize.Proposal) []string {
	return []string{
		lifecycle.AttributeSummarizer, p.Summarizer,
		lifecycle.AttributeFromSeq, number(p.From), lifecycle.AttributeToSeq, number(p.To),
	}
}

// publish notifies the watchers; attributes are keys and values in turn, and those without
// a value are left out.
func (n *News) publish(sessionID string, what lifecycle.Type, attributes ...string) {
	e := lifecycle.Event{SessionID: sessionID, Type: what, Time: n.clock(), Attributes: map[string]string{}}
	for i := 0; i < len(attributes); i += 2 {
		if attributes[i+1] != "" {
			e.Attributes[attributes[i]] = attributes[i+1]
		}
	}
	n.bus.Publish(e)
}

func number[N ~uint64](n N) string { return strconv.FormatUint(uint64(n), 10) }
