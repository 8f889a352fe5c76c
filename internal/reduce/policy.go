package reduce

import (
	"cmp"
	"time"

	"github.com/contextd/contextd/internal/budget"
)

// Policy says how a conversation is reduced. A zero field switches its reducer off, unless the field's comment says
// otherwise. DefaultPolicy returns the defaults.
type Policy struct {
	// Whole refuses a log that does not fit, and does not reduce it. The other fields then apply only to callers'
	// compactions.
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
	// Recall is the tool with which the model can get back what is not shown.
	Recall Recall
}

// ToolResults says how long results stay in full.
type ToolResults struct {
	Default Retention
	// ByTool has rules by tool name or glob (as in path.Match). The rule of an exact name is used before those of
	// globs, a longer glob before a shorter one, and globs of equal length in byte order.
	ByTool map[string]Retention
	// Strict evaluates the rules by age at every reduction; otherwise only batches do.
	Strict bool
	// EvictErrors applies the rules to failed results, too; otherwise these stay.
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
	// Never keeps results, even if the target forces evictions, until their group is dropped.
	Never bool
	// MinTokens keeps results that are smaller than this.
	MinTokens uint64
}

// Clipping limits single results, in tokens.
type Clipping struct {
	// MaxTokens is the size of the largest result that stays whole. With Exact, 0 is no limit. Without Exact, the
	// limit is the fraction Share of the target if MaxTokens is 0 or larger than that.
	MaxTokens uint64
	Exact     bool
	// Share is the largest fraction of the target that a result may take when it first appears; 0 is an eighth. If
	// Share is set, a result may take up to 1,600 tokens under a small target, but at most two and a half times the
	// fraction.
	Share float64
	// HeadTokens and TailTokens are how much of each end stays; with both 0 the ends share the limit two to
	// one.
	HeadTokens, TailTokens uint64
	// NameTokens is the most tokens of names that occur only in the part that is cut out. They take at most an eighth
	// of the limit, and nothing if HeadTokens or TailTokens is set. Policies in records of earlier builds have 0.
	NameTokens uint64
}

// Thinking says for how many turns reasoning stays; nil is always.
type Thinking struct {
	KeepTurns *uint32
	// Return is set where the model that is asked wants it back as text; see budget.Model.
	Return bool
}

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
	// CutFrom is the fraction of the target from which a cut is made that the target does not force, if it pays
	// within CutPaybackTurns turns. If either is 0, no such cut is made.
	CutFrom         float64
	CutPaybackTurns uint32
	// CutFromTokens is the smallest context for such a cut, whatever the target: a smaller context is cheap to read
	// again. CutTo is the fraction of the target that remains after such a cut, and after a compaction without a
	// target of its own; 0 is To.
	CutFromTokens uint64
	CutTo         float64
	// CutReach forbids such a cut while the agent still works with the text that it would drop. For that it counts
	// the names in the calls since the last cut whose previous occurrence would be dropped, and forbids the cut if
	// there are more than CutReach per turn. 0 forbids none.
	CutReach float64
	// KeepLastTurns is how many of the newest turns stay verbatim as long as the target has room for them.
	KeepLastTurns uint32
	// LedgerShare, WorkingSetShare and IndexShare are fractions of the target for the
	// ledger of collapsed calls, for the parts of the files in work that stay verbatim,
	// and for the index of names.
	LedgerShare, WorkingSetShare, IndexShare float64
	// ListTokens is the most tokens of the working set, and of the index, whatever their shares: beyond that they
	// have hardly anything that is needed again. 0 is no limit.
	ListTokens uint64
	// IndexTokens is the most tokens of the index, whatever its share; 0 is ListTokens.
	IndexTokens uint64
	// IndexLines is the fraction of the index for the lines in which its names last occurred, including lines of
	// arguments; bare names take the rest. 0 is a third, without lines of arguments, as in records of earlier builds.
	IndexLines float64
	// SummaryShare is the fraction of the target that the text of a summary may take,
	// and StartAt the fraction at which one is worth making; 0 asks for none.
	SummaryShare float64
	StartAt      float64
}

// Cache says when to rewrite the cached prefix although nothing forces that. The zero value never does, and allows no
// cuts that pay.
type Cache struct {
	// EvictEveryTurns runs a batch when this many turns have passed since the last one; 0 does not.
	EvictEveryTurns uint32
	// ClearAtLeastTokens runs a batch when it frees at least this many tokens; 0 does not.
	ClearAtLeastTokens uint64
	// TTL is how long the provider caches a prefix. A rewrite is free after the session was idle for longer. 0 is
	// without end.
	TTL time.Duration
	// PaybackTurns delays a batch until the cached tokens that it saves in this many turns cost as much as the tail
	// that the provider must cache again. 0 delays none.
	PaybackTurns uint32
	// Prices decide whether a rewrite pays.
	Prices Prices
}

// Depth returns the fraction of the target that remains after a cut that the target does not force.
func (c Collapse) Depth() float64 { return cmp.Or(c.CutTo, c.To) }

// sorted reports whether a digest is written by the current rules: names come from decoded arguments and results and
// are grouped by their source, arguments that calls share are written once, and the agent's plan and failures are
// shown. Policies in records of earlier builds have no ListTokens. Their digests are written without these, so that
// their contexts keep their bytes.
func (c Collapse) sorted() bool { return c.ListTokens > 0 }

// list returns the most tokens of a list of the digest, given its share of the target.
func (c Collapse) list(b budget.Budget, share float64) uint64 {
	most := b.Share(share)
	if c.ListTokens > 0 {
		most = min(most, c.ListTokens)
	}
	return most
}

// indexTokens returns the most tokens that the index may take.
func (c Collapse) indexTokens(b budget.Budget) uint64 {
	most := c.list(b, c.IndexShare)
	if c.IndexTokens > 0 {
		most = min(most, c.IndexTokens)
	}
	return most
}

// quotesArguments reports whether the index shows lines of arguments for names that occur only there.
func (c Collapse) quotesArguments() bool { return c.IndexLines > 0 }

// indexLines returns how many tokens of an index its lines take.
func (c Collapse) indexLines(index uint64) uint64 {
	const unnamed = 3 // the lines take a third where the policy does not say
	if c.IndexLines == 0 {
		return index / unnamed
	}
	return fraction(index, c.IndexLines)
}
