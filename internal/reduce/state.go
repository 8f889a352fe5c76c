package reduce

import (
	"cmp"
	"math"

	eventlog "github.com/contextd/contextd/internal/log"
)

// State records the decisions of reductions, so that later reductions keep them: the same log and state give the same
// view. Every field except Rooted only moves forward. The zero value is the state of a session that was never
// reduced.
type State struct {
	// EvictedAsOf is the watermark of the rules by age: the head of the log when they were last evaluated. What they
	// evicted then stays evicted, and they evict nothing more until the watermark moves.
	EvictedAsOf eventlog.Seq
	// EvictedTurn is the turn of that event.
	EvictedTurn uint32
	// AskedAsOf is the head of the log when a reduction last considered a cut that pays. It does so only once for
	// each head. The answer also depends on which summaries are ready, and a new summary alone must not rewrite the
	// context.
	AskedAsOf eventlog.Seq
	// Freed maps the name of a reducer to the event up to which it has freed, on demand, all that it may; see
	// Through.
	Freed map[string]eventlog.Seq
	// CollapsedThrough is the event up to which groups are dropped from the view.
	CollapsedThrough eventlog.Seq
	// CollapsedFor is the target, in tokens, whose shares limit the digest of the
	// collapsed run and the user messages kept next to it.
	CollapsedFor uint64
	// LateAfter is for late results: one that came after this event keeps the group of its call in view although the
	// run covers that, because a model has seen the result for few turns or not at all. 0 keeps none.
	LateAfter eventlog.Seq
	// Summary is the id of the summary that the digest quotes; empty if it quotes none.
	Summary string
	// SummaryTokens is the size to which the text of a caller's summary was clipped; 0 if it is in full.
	SummaryTokens uint64
	// Rooted are the results, in the order of the log, that were shown in full when a root named them. They stay in
	// full until a batch or a cut finds that no root names them any more. Released is the event through which the
	// last resort evicted protected results.
	Rooted   []eventlog.Place
	Released eventlog.Seq
	// ClipTokens is the size above which a result is clipped when it first appears. It is fixed when the session is
	// first assembled.
	ClipTokens uint64
	// Clips are tighter limits on the results up to an event. The last resort sets them.
	Clips []Clip
	// TextClips are limits of the last resort on the texts of users and assistants up to an event.
	TextClips []Clip
	// MediaClips are limits, up to an event, on the media and the provider blocks in users' messages: a
	// larger one is replaced by a description.
	MediaClips []Clip
	// AnchorTokens is the size to which the first user message was clipped; 0 if it is in full.
	AnchorTokens uint64
	// SystemTextTokens is the size above which single texts of the system prompt are clipped; 0 clips none.
	SystemTextTokens uint64
	// Unbound are the events whose bound reasoning is not shown, because something before it changed since
	// a model wrote it.
	Unbound eventlog.Ranges
}

// Through returns the event up to which a reducer has freed, on demand, all that it may; 0 if it was never asked.
func (s State) Through(reducer string) eventlog.Seq { return s.Freed[reducer] }

// freed returns the state with a reducer's Through moved forward.
func (s State) freed(reducer string, through eventlog.Seq) State {
	if through > s.Through(reducer) {
		freed := map[string]eventlog.Seq{reducer: through}
		for name, seq := range s.Freed {
			freed[name] = max(seq, freed[name])
		}
		s.Freed = freed
	}
	return s
}

// Clip is a limit on the size of each body in events (From, Through].
type Clip struct {
	From, Through eventlog.Seq
	Tokens        uint64
}

// clipFor returns the limit that applies to a result at seq; 0 is none.
func (s State) clipFor(seq eventlog.Seq) uint64 { return tightest(s.ClipTokens, s.Clips, seq) }

// leastClip returns the smallest limit on any result. A group that is no larger needs no clipping.
func (s State) leastClip() uint64 {
	least := cmp.Or(s.ClipTokens, math.MaxUint64)
	for _, c := range s.Clips {
		least = min(least, c.Tokens)
	}
	return least
}

// tightest returns the smallest of the limits that apply at seq; 0 is none.
func tightest(limit uint64, clips []Clip, seq eventlog.Seq) uint64 {
	for _, c := range clips {
		if seq > c.From && seq <= c.Through && (limit == 0 || c.Tokens < limit) {
			limit = c.Tokens
		}
	}
	return limit
}
