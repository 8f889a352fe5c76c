package reduce

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// OverBudgetError says that the view cannot be made small enough, and which parts remain that no reducer may change.
type OverBudgetError struct {
	Target, Needed uint64
	Parts          []IrreduciblePart
	// Whole is set if the policy does not reduce. Parts are then the largest parts of the context.
	Whole bool
}

// IrreduciblePart is a part of the context that no reducer may make smaller.
type IrreduciblePart struct {
	What   string
	Seq    eventlog.Seq
	Tokens uint64
}

// mostParts is how many parts an error lists at most; it lists the largest.
const mostParts = 20

func (e *OverBudgetError) Error() string {
	why := "irreducible"
	if e.Whole {
		why = "nothing of it may be reduced, its largest parts are"
	}
	s := fmt.Sprintf("the context needs %d tokens and the target is %d; %s:", e.Needed, e.Target, why)
	for i, p := range e.Parts {
		if i > 0 {
			s += ","
		}
		if i == mostParts {
			return s + fmt.Sprintf(" and %d more", len(e.Parts)-i)
		}
		where := ""
		if p.Seq > 0 {
			where = fmt.Sprintf("event %d, ", p.Seq)
		}
		s += fmt.Sprintf(" %s (%s%d tokens)", p.What, where, p.Tokens)
	}
	return s
}

const newestTurn = "newest turn"

// irreducible lists the parts of a context that could not be made smaller, the largest first: the groups of
// the view, its digest, and the reserved tokens.
func irreducible(v View, reserved uint64) []IrreduciblePart {
	var parts []IrreduciblePart
	if reserved > 0 {
		parts = append(parts, IrreduciblePart{What: "reminders", Tokens: reserved})
	}
	for i := range v.items {
		it := &v.items[i]
		what := newestTurn
		switch {
		case it.group.Kind == KindSystem:
			what = "system prompt"
		case it.group.Anchor:
			what = "first user message"
		case it.group.Pinned:
			what = "pinned message"
		case it.group == v.human:
			what = "newest user message"
		case it.group.Human > 0:
			what = "user message"
		case it.group.Standing != "":
			what = "standing message of the runtime"
		case it.group.Kind == KindUser:
			what = "message of the runtime"
		}
		parts = append(parts, IrreduciblePart{what, it.group.First, it.tokens})
	}
	d, _ := v.Digest()
	if d.SummaryTokens > 0 {
		parts = append(parts, IrreduciblePart{"summary", 0, d.SummaryTokens})
	}
	if rest := d.Tokens - d.SummaryTokens; rest > 0 {
		parts = append(parts, IrreduciblePart{"record of earlier calls", 0, rest})
	}
	largestFirst(parts)
	return parts
}

// InTheWay lists the parts of a context after a compaction that missed its goal, the largest first.
func (p *Pipeline) InTheWay(v View, reserved uint64) []IrreduciblePart {
	parts := irreducible(v, reserved)
	for i := range parts {
		if parts[i].What == newestTurn {
			parts[i].What = "turn"
		}
	}
	return parts
}

// checkReminders refuses reminders that leave no room for any message.
func (p *Pipeline) checkReminders(target, reserved uint64) error {
	if reserved == 0 {
		return nil
	}
	err := &OverBudgetError{Target: target, Needed: reserved, Parts: []IrreduciblePart{{What: "reminders", Tokens: reserved}}}
	if len(p.conv.groups) > 0 {
		err.Needed += budget.MessageOverhead
		err.Parts = append(err.Parts, IrreduciblePart{What: "any message beside them", Tokens: budget.MessageOverhead})
	}
	if err.Needed <= target {
		return nil
	}
	largestFirst(err.Parts)
	return err
}

func largestFirst(parts []IrreduciblePart) {
	slices.SortStableFunc(parts, func(a, b IrreduciblePart) int { return cmp.Compare(b.Tokens, a.Tokens) })
}

// refuseOver refuses a result over the target, under a policy that does not reduce.
func (r *reduction) refuseOver(now Result) error {
	if !r.over(now) {
		return nil
	}
	parts := r.InTheWay(now.View, r.ask.Reserved)
	return &OverBudgetError{
		Target: r.budget.Target + r.ask.Reserved, Needed: now.View.Tokens() + r.ask.Reserved,
		Parts: parts[:min(len(parts), mostParts)], Whole: true,
	}
}
