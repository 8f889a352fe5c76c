package reduce

import (
	"cmp"
	"time"

	"github.com/contextd/contextd/internal/budget"
)

// Policy says how a conversation is reduced. It is a value without defaults of
// its own: DefaultPolicy gives those, and a zero field switches its reducer off
// unless the field says otherwise.
type Policy struct {
	// Whole refuses a log that does not fit rather than reduce it. The other fields then shape
	// callers' compactions alone.
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
	// Strict has rules by age hold at every reduction; otherwise they are evaluated at batches.
	Strict bool
	// EvictErrors lets failed results go by the same rules; otherwise they stay.
	EvictErrors bool
	// OutlineTokens is how much of its most telling lines an evicted result keeps.
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
	// MaxTokens is the largest result that stays whole. With Exact 0 is any; else the
	// fraction Share of the target is the limit where MaxTokens is 0 or more.
	MaxTokens uint64
	Exact     bool
	// Share is the largest part of the target that a result may take when it first
	// appears, or 1,600 tokens where those are no more than two and a half times that; 0 is
	// an eighth.
	Share float64
	// HeadTokens and TailTokens say how much of each end stays; both 0 divide the
	// limit two to one.
	HeadTokens, TailTokens uint64
	// NameTokens is what names may take that are in what is cut out and in no end, in tokens.
	// They take at most an eighth of the limit, and nothing where HeadTokens or TailTokens say
	// what stays. Policies in records of earlier builds have none.
	NameTokens uint64
}

// Thinking says for how many turns reasoning stays. Nil is forever.
type Thinking struct{ KeepTurns *uint32 }

// Window limits the dialogue. Zero limits are none beside the target.
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
	// CutFrom is the fraction of the target from which groups are dropped although nothing
	// forces it, if that pays within CutPaybackTurns turns; 0 of either is never.
	CutFrom         float64
	CutPaybackTurns uint32
	// CutFromTokens is the size from which that is considered, whatever the target: what is
	// smaller is cheap to read again. CutTo is the fraction that then remains, and
	// after a compaction that names no target; 0 is To.
	CutFromTokens uint64
	CutTo         float64
	// CutReach is how many names a turn the calls after the last cut may have that came last
	// before what would remain, for a cut that nothing forces to go: an agent that reaches back
	// further works with what the cut would drop. 0 is any number.
	CutReach float64
	// KeepLastTurns stay verbatim where the target has room for them.
	KeepLastTurns uint32
	// LedgerShare, WorkingSetShare and IndexShare are fractions of the target for the
	// ledger of collapsed calls, for the parts of the files in work that stay verbatim,
	// and for the index of names.
	LedgerShare, WorkingSetShare, IndexShare float64
	// ListTokens is the most that the working set and the index take each, in tokens,
	// whatever their shares: with more of them, hardly anything is found that is not found
	// without. 0 is no limit.
	ListTokens uint64
	// IndexTokens is the most that the index takes, in tokens, whatever its share. 0 is
	// ListTokens.
	IndexTokens uint64
	// IndexLines is the fraction of the index that the lines take in which its names last were,
	// those of arguments too; the names by themselves take the rest. 0 is a third, without
	// arguments, as policies in records of earlier builds have it.
	IndexLines float64
	// SummaryShare is the fraction of the target that the text of a summary may take,
	// and StartAt the fraction at which one is worth making; 0 asks for none.
	SummaryShare float64
	StartAt      float64
}

// Cache says when a rewrite of the prefix that nothing forces is worth it. The zero value
// is never, cuts that pay included.
type Cache struct {
	// EvictEveryTurns lets a batch go when so many turns have passed since the
	// last one.
	EvictEveryTurns uint32
	// ClearAtLeastTokens lets a batch go when it frees so much.
	ClearAtLeastTokens uint64
	// TTL is how long the provider keeps a prefix; after so long idle a rewrite
	// is free. 0 is never.
	TTL time.Duration
	// PaybackTurns holds a batch back until what it frees pays, at cached prices
	// and within so many turns, for the tail it makes the provider write again.
	// 0 holds nothing back.
	PaybackTurns uint32
	// Prices are those by which a rewrite pays or not.
	Prices Prices
}

// Depth is the fraction of the target that remains after a cut that the target does not
// force.
func (c Collapse) Depth() float64 { return cmp.Or(c.CutTo, c.To) }

// sorted reports whether a digest is written as it is now: with names from decoded arguments
// and results, grouped by where they are from, what calls have in common said once, the agent's
// plan and what failed. Policies in records of earlier builds, which are computed again with the
// same bytes, have no ListTokens, and their digests have none of that.
func (c Collapse) sorted() bool { return c.ListTokens > 0 }

// list is what a list of the digest may take that has a share of the target.
func (c Collapse) list(b budget.Budget, share float64) uint64 {
	most := b.Share(share)
	if c.ListTokens > 0 {
		most = min(most, c.ListTokens)
	}
	return most
}

// indexTokens is what the index may take.
func (c Collapse) indexTokens(b budget.Budget) uint64 {
	most := c.list(b, c.IndexShare)
	if c.IndexTokens > 0 {
		most = min(most, c.IndexTokens)
	}
	return most
}

// quotesArguments reports whether names that only arguments held are shown in lines of these.
func (c Collapse) quotesArguments() bool { return c.IndexLines > 0 }

// indexLines is what the lines take of an index of so many tokens.
func (c Collapse) indexLines(index uint64) uint64 {
	const unnamed = 3 // of an index whose part is not named: one over so much
	if c.IndexLines == 0 {
		return index / unnamed
	}
	return fraction(index, c.IndexLines)
}
