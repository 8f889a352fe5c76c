package decide

import (
	"github.com/contextd/contextd/internal/lifecycle"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
)

// Collapsed says what a compaction, or a cut that the budget forced, did to a context.
type Collapsed struct {
	// Policy is the projection policy by which Before and After were measured.
	Policy        string
	Before, After Size
	// Goal is the size, in tokens, at which a forced cut aims. The cut keeps at least the newest KeepLastTurns turns.
	// Both are 0 for a caller's compaction.
	Goal          uint64
	KeepLastTurns uint32
	// Archived is how many messages were dropped.
	Archived int
	Strategy reduce.Strategy
	// Summary is the summary that the context quotes after the compaction; nil if it quotes none.
	Summary   *summarize.Summary
	Reminders lifecycle.ReminderReport
}

// Size is the size of a context.
type Size struct {
	Messages int
	Tokens   uint64
}

// Forced reports the cut that the budget forced in a projection; nil if it forced none.
func (in Inputs) Forced(p Projected) *Collapsed {
	start := *p.Result.Start
	if p.Through() <= start.State.CollapsedThrough {
		return nil
	}
	before, err := in.show(start)
	if err != nil {
		return nil
	}
	out := in.Collapsed(before, p)
	out.Goal, out.KeepLastTurns = in.Budget.Share(in.Reduction.Collapse.To), in.Reduction.Collapse.KeepLastTurns
	return &out
}

// Collapsed compares the projections before and after a compaction.
func (in Inputs) Collapsed(before, after Projected) Collapsed {
	out := Collapsed{
		Policy: in.Projection.PolicyName(),
		Before: Size{before.Messages(), before.Tokens()}, After: Size{after.Messages(), after.Tokens()},
		Strategy: in.Caller.Strategy, Reminders: in.reminders(before.Through(), after),
	}
	old, _ := before.Result.View.Digest()
	now, _ := after.Result.View.Digest()
	out.Archived = now.Messages - old.Messages
	out.Summary = in.summaryNamed(after.Result.State.Summary)
	if out.Strategy == "" {
		switch {
		case out.Archived <= 0:
			out.Strategy = reduce.Mask
		case out.Summary != nil && after.Result.State.Summary != before.Result.State.Summary:
			out.Strategy = reduce.Summarize
		default:
			out.Strategy = reduce.Drop
		}
	}
	return out
}

// summaryNamed returns the summary with an id, from the offered ones or from a caller's compaction; nil if
// there is none.
func (in Inputs) summaryNamed(id string) *summarize.Summary {
	for i := range in.Summaries {
		if in.Summaries[i].ID == id {
			return &in.Summaries[i]
		}
	}
	return DecidedSummary(in.Conversation, id)
}

// DecidedSummary returns the summary that the compaction in force quotes, if it has the id. In a copied
// log, the compaction event may be the only place that has its text.
func DecidedSummary(conv *reduce.Conversation, id string) *summarize.Summary {
	if d := conv.Decided(); d != nil && id != "" && d.Summary.ID == id {
		return &summarize.Summary{ID: id, From: 1, To: d.Summary.Through, Text: d.Summary.Text, Summarizer: d.Summary.By}
	}
	return nil
}
