package reduce

import (
	"cmp"
	"math"

	eventlog "github.com/contextd/contextd/internal/log"
)

// State is what makes decisions stick: applied to the same log it gives the same
// view, and every field but Rooted only moves forward. The zero value is the state of a
// session that was never reduced.
type State struct {
	// EvictedAsOf is the event at which the rules by age were last evaluated:
	// what they let go then stays gone, and nothing else goes until it moves.
	EvictedAsOf eventlog.Seq
	// EvictedTurn is the turn of that event.
	EvictedTurn uint32
	// AskedAsOf is the event at which it was last asked whether a cut pays. It is not
	// asked twice of the same log: the answer depends on the summaries that are there,
	// and one that arrives must rewrite nothing by itself.
	AskedAsOf eventlog.Seq
	// Freed has, by the name of a reducer, the event up to which it did under pressure all
	// that it may; see Through.
	Freed map[string]eventlog.Seq
	// CollapsedThrough is the event up to which groups are dropped from the view.
	CollapsedThrough eventlog.Seq
	// CollapsedFor is the target, in tokens, whose shares limit the digest of the
	// collapsed run and the user messages kept next to it.
	CollapsedFor uint64
	// LateAfter is the event after which late results keep the groups of their calls in view although
	// the run goes beyond them: no model has seen them, or not for long. 0 keeps none.
	LateAfter eventlog.Seq
	// Summary is the id of the summary that the digest quotes; empty if it quotes none.
	Summary string
	// SummaryTokens is what the text of a caller's summary was clipped to; 0 if it is
	// in full.
	SummaryTokens uint64
	// Rooted are results, in order, that roots named while they were in full: they stay so
	// until a batch or a cut finds that none names them. Released is the event through which
	// the last resort gave up what is protected.
	Rooted   []eventlog.Place
	Released eventlog.Seq
	// ClipTokens is the size above which a result is clipped when it first
	// appears; fixed when the session is first assembled.
	ClipTokens uint64
	// Clips are tighter limits that single overflows forced on the results up to
	// an event.
	Clips []Clip
	// TextClips are limits on the texts of users and assistants up to an event: the
	// last resort.
	TextClips []Clip
	// MediaClips are limits on the media of users, and on providers' own blocks beside them, up
	// to an event: what is larger is described.
	MediaClips []Clip
	// AnchorTokens is what the first user message was clipped to; 0 if it is
	// in full.
	AnchorTokens uint64
	// SystemTextTokens is the size above which single texts of the system prompt are
	// clipped; 0 if it is in full.
	SystemTextTokens uint64
}

// Through is the event up to which a reducer did under pressure all that it may; 0 if it was
// never asked to.
func (s State) Through(reducer string) eventlog.Seq { return s.Freed[reducer] }

// freed is the state with a reducer's Through moved forward.
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

// Clip is a limit on the size of single bodies in events (From, Through].
type Clip struct {
	From, Through eventlog.Seq
	Tokens        uint64
}

// clipFor is the limit that applies to a result at seq; 0 is none.
func (s State) clipFor(seq eventlog.Seq) uint64 { return tightest(s.ClipTokens, s.Clips, seq) }

// leastClip is the smallest limit on any result: a group that is not larger has none to clip.
func (s State) leastClip() uint64 {
	least := cmp.Or(s.ClipTokens, math.MaxUint64)
	for _, c := range s.Clips {
		least = min(least, c.Tokens)
	}
	return least
}

// tightest is the smallest limit on what is at seq; 0 is none.
func tightest(limit uint64, clips []Clip, seq eventlog.Seq) uint64 {
	for _, c := range clips {
		if seq > c.From && seq <= c.Through && (limit == 0 || c.Tokens < limit) {
			limit = c.Tokens
		}
	}
	return limit
}
