package projection

import (
	"fmt"
	"sync"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// The reasons of summary_prefix for not changing the view.
const (
	NoopShortHistory = "summary_prefix_noop_short_history"
	NoopNoSummary    = "summary_prefix_noop_no_summary"
	NoopNoGain       = "summary_prefix_noop_no_gain"
)

// summaryPrefix replaces all groups before the newest ones by the caller's summary, except those that may not be
// dropped.
type summaryPrefix struct {
	options Options
	mu      sync.Mutex
	calls   reduce.Memo[reduce.GroupCalls]
}

const (
	defaultSummaryKeepLast = 8
	// The ledger of the calls and the quotes of the user may take these shares of the size of the dropped
	// groups, but at most mostLedger and mostQuotes tokens.
	ledgerShare = 0.10
	quoteShare  = 0.05
	mostLedger  = 2000
	mostQuotes  = 1000
	// frontSlack is the room, in tokens, for headings and for the one line that every ledger has.
	frontSlack = 64
)

func (p *summaryPrefix) Apply(v reduce.View, _ uint32, before State) Applied {
	keep := p.options.keepLast(defaultSummaryKeepLast)
	noop := func(reason, note string) Applied {
		return Applied{View: v, State: before, Reason: reason, Step: &reduce.Step{
			Reducer: SummaryPrefix, TokensBefore: v.Tokens(), TokensAfter: v.Tokens(), Note: note,
		}}
	}
	if p.options.Summary == "" {
		if summarized(v) {
			return noop("", "the reduction shows a summary already")
		}
		return noop(NoopNoSummary, "the caller gave no summary, and the reduction shows none")
	}
	f := p.front(v, keep)
	blocked := f.safety.reason()
	if keep >= v.Len() || len(f.leave) == 0 && blocked == "" {
		return noop(NoopShortHistory, fmt.Sprintf("none of %d groups before the newest %d may be dropped", v.Len(), keep))
	}
	if len(f.leave) == 0 {
		out := noop(blocked, blocked)
		out.SafetyBlocked = true
		return out
	}
	p.mu.Lock()
	text, most := f.write(v, p.options.Summary, &p.calls)
	p.mu.Unlock()
	e := v.Editor()
	if most >= f.shown || !e.Collapse(f.through, f.keep, text) {
		return noop(NoopNoGain, fmt.Sprintf("the summary and its record would take up to %d tokens, and the %d groups that they replace take %d", most, len(f.leave), f.shown))
	}
	out := Applied{View: e.View(), State: before, SafetyBlocked: blocked != "", Reason: blocked}
	note := fmt.Sprintf("%d groups dropped, through event %d", len(f.leave), f.through)
	if out.Reason != "" {
		note += "; " + out.Reason
	}
	out.Step = &reduce.Step{Reducer: SummaryPrefix, TokensBefore: v.Tokens(), TokensAfter: e.Tokens(), Touched: len(f.leave), Note: note}
	return out
}

// summarized reports whether the digest of a view quotes a summary.
func summarized(v reduce.View) bool {
	d, _ := v.Digest()
	for _, s := range d.Sections() {
		if s.Kind == reduce.SectionSummary {
			return true
		}
	}
	return false
}

// front is the part of a view that the summary replaces.
type front struct {
	leave []*reduce.Group
	// keep are the groups among them that stay.
	keep    map[*reduce.Group]bool
	through eventlog.Seq
	// shown is the size of leave in the view, and raw their size in full, in tokens.
	shown, raw uint64
	safety     *safety
}

func (p *summaryPrefix) front(v reduce.View, keep int) front {
	f := front{keep: map[*reduce.Group]bool{}, safety: newSafety(v, p.options)}
	inForce := v.AllInForce()
	for i := range v.Len() - keep {
		if v.Ended() != nil {
			break
		}
		g := v.Group(i)
		switch {
		case v.Spared(i):
		case inForce[i], v.Protected(i):
			f.keep[g] = true
		case !f.safety.alone(i).Whole:
			f.keep[g] = true
			f.safety.block(i)
		default:
			f.leave = append(f.leave, g)
			f.through = g.First
			f.shown += v.GroupTokens(i)
			f.raw += g.Tokens
		}
	}
	return f
}

// write returns the text that replaces the front, and most, the most tokens that it adds to the existing digest. most
// grows more slowly than the front, so if a summary has freed tokens once, it still does when the front grows.
func (f front) write(v reduce.View, summary string, calls *reduce.Memo[reduce.GroupCalls]) (text string, most uint64) {
	of := func(share float64, limit uint64) uint64 { return min(uint64(float64(f.raw)*share), limit) }
	w := reduce.PrefixDigest{
		Summary: reduce.Summary{ID: SummaryPrefix, Through: f.through, By: "the caller", Text: summary},
		Groups:  f.leave, LedgerTokens: of(ledgerShare, mostLedger), QuoteTokens: of(quoteShare, mostQuotes), Calls: calls,
	}
	return w.Write(v), w.HeadTokens(v) + w.LedgerTokens + w.QuoteTokens + frontSlack
}
