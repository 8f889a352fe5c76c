package reduce

import (
	"cmp"
	"time"

	"github.com/contextd/contextd/internal/budget"
)

// Policy says how a conversation is reduced. It has no defaults of its own: DefaultPolicy gives those. A zero
// field switches its reducer off unless the field says otherwise.
type Policy struct {
	// Whole refuses a log that does not fit, instead of reducing it. The other fields then apply only to
	// callers' compactions.
	Whole       bool
	ToolResults ToolResults
	// Duplicates stubs an older result whose body a later identical call
	// returned again.
	Duplicates bool
	Clipping   Clipping
	Thinking   Thinking
	Window     Window
	Collapse   Collapse
	Cache      Cache
	// Recall is the tool by which the model gets back what is not shown.
	Recall Recall
}

// ToolResults says how long results stay in full.
type ToolResults struct {
	Default Retention
	// ByTool holds rules by tool name or glob (as in path.Match). An exact name
	// comes before globs, a longer glob before a shorter one, and equal ones in
	// byte order.
	ByTool map[string]Retention
	// Strict evaluates the rules by age at every reduction; otherwise they are evaluated at batches.
	Strict bool
	// EvictErrors applies the same rules to failed results; otherwise they stay.
	EvictErrors bool
	// OutlineTokens is the size of the outline that an evicted result keeps: its most informative lines.
	OutlineTokens uint64
}

// Retention is a rule for one tool's results. With neither Turns nor Last they
// are never evicted by age.
type Retention struct {
	// Turns keeps results of the last Turns turns.
	Turns uint32
	// Last keeps the last Last results of this tool.
	Last uint32
	// Never keeps results whatever the pressure, until their group is dropped.
	Never bool
	// MinTokens keeps results smaller than this.
	MinTokens uint64
}

// Clipping limits single results, in tokens.
type Clipping struct {
	// MaxTokens is the size of the largest result that stays whole; with Exact, 0 is no limit. Without
	// Exact, the fraction Share of the target is the limit where MaxTokens is 0 or larger than that.
	MaxTokens uint64
	Exact     bool
	// Share is the largest part of the target that a result may take when it first appears; 0 is an eighth.
	// Under a small target a result may take up to 1,600 tokens, but at most two and a half times that part.
	Share float64
	// HeadTokens and TailTokens are how much of each end stays; with both 0 the ends share the limit two to
	// one.
	HeadTokens, TailTokens uint64
	// NameTokens is how many tokens the names may take that occur only in the part that is cut out. They
	// take at most an eighth of the limit, and nothing where HeadTokens or TailTokens is set. Policies in
	// records of earlier builds have none.
	NameTokens uint64
}

// Thinking says for how many turns reasoning stays. Nil is forever.
type Thinking struct{ KeepTurns *uint32 }

// Window limits the dialogue. With zero limits only the target limits it.
type Window struct {
	MaxTurns  uint32
	MaxTokens uint64
	// StrictAnchor refuses to clip a first user message that takes more than half
	// of the target.
	StrictAnchor bool
}

// Collapse says how a leading run of groups is dropped.
type Collapse struct {
	// To is the fraction of the target that remains after a collapse.
	To float64
	// CutFrom is the fraction of the target from which a cut that the target does not force is made, if it
	// pays within CutPaybackTurns turns. With either 0 none is made.
	CutFrom         float64
	CutPaybackTurns uint32
	// CutFromTokens is the least size of a context for such a cut, whatever the target: a smaller context is
	// cheap to read again. CutTo is the fraction of the target that remains after such a cut, and after a
	// compaction without a target of its own; 0 is To.
	CutFromTokens uint64
	CutTo         float64
	// CutReach forbids such a cut where the calls since the last cut have more names per turn than this
	// whose previous occurrence the cut would drop: the agent still works with that text. 0 forbids none.
	CutReach float64
	// KeepLastTurns stay verbatim where the target has room for them.
	KeepLastTurns uint32
	// LedgerShare, WorkingSetShare and IndexShare are fractions of the target for the
	// ledger of collapsed calls, for the parts of the files in work that stay verbatim,
	// and for the index of names.
	LedgerShare, WorkingSetShare, IndexShare float64
	// ListTokens is the most that the working set and the index may take each, in tokens, whatever their
	// shares: beyond it they hold hardly anything that is needed again. 0 is no limit.
	ListTokens uint64
	// IndexTokens is the most that the index takes, in tokens, whatever its share. 0 is
	// ListTokens.
	IndexTokens uint64
	// IndexLines is the fraction of the index for lines in which its names last occurred, lines of arguments
	// included; bare names take the rest. 0 is a third, without lines of arguments, as policies in records
	// of earlier builds have it.
	IndexLines float64
	// SummaryShare is the fraction of the target that the text of a summary may take,
	// and StartAt the fraction at which one is worth making; 0 asks for none.
	SummaryShare float64
	StartAt      float64
}

// Cache says when a rewrite of the cached prefix that nothing forces is worth it. The zero value allows none,
// nor cuts that pay.
type Cache struct {
	// EvictEveryTurns runs a batch when so many turns have passed since the last one.
	EvictEveryTurns uint32
	// ClearAtLeastTokens runs a batch when it frees so much.
	ClearAtLeastTokens uint64
	// TTL is how long the provider caches a prefix: after the session was idle for longer, a rewrite is
	// free. 0 is without end.
	TTL time.Duration
	// PaybackTurns delays a batch until what it frees, at the price of cached tokens, pays within so many
	// turns for the tail that the provider must cache again. 0 delays none.
	PaybackTurns uint32
	// Prices decide whether a rewrite pays.
	Prices Prices
}

// Depth is the fraction of the target that remains after a cut that the target does not force.
func (c Collapse) Depth() float64 { return cmp.Or(c.CutTo, c.To) }

// sorted reports whether a digest is written by the current rules: with names from decoded arguments and
// results, grouped by where they are from; with arguments that calls share written once; with the agent's
// plan and what failed. Policies in records of earlier builds have no ListTokens; their digests are written
// without these, so that their contexts keep their bytes.
func (c Collapse) sorted() bool { return c.ListTokens > 0 }

// list is the most tokens that a list of the digest may take whose share of the target is given.
func (c Collapse) list(b budget.Budget, share float64) uint64 {
	most := b.Share(share)
	if c.ListTokens > 0 {
		most = min(most, c.ListTokens)
	}
	return most
}

// indexTokens is the most tokens that the index may take.
func (c Collapse) indexTokens(b budget.Budget) uint64 {
	most := c.list(b, c.IndexShare)
	if c.IndexTokens > 0 {
		most = min(most, c.IndexTokens)
	}
	return most
}

// quotesArguments reports whether the index shows lines of arguments for names that occur only there.
func (c Collapse) quotesArguments() bool { return c.IndexLines > 0 }

// indexLines is how many tokens of an index its lines take.
func (c Collapse) indexLines(index uint64) uint64 {
	const unnamed = 3 // the lines take a third where the policy does not say
	if c.IndexLines == 0 {
		return index / unnamed
	}
	return fraction(index, c.IndexLines)
}
