// Package projection decides which part of a reduced view the next request shows. It has one file for each policy.
// safety.go prevents all of them from breaking a provider's rules.
package projection

import (
	"cmp"
	"fmt"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection/expression"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/scrub"
)

// The names of the policies.
const (
	// Raw shows the reduced view as it is.
	Raw = "raw"
	// Full shows the log unreduced, apart from what callers compacted; a log that does not fit is refused.
	Full             = "full"
	CleanToolRepair  = "clean_tool_repair"
	SquashFailed     = "squash_failed_calls"
	SummaryPrefix    = "summary_prefix"
	ReachabilityGC   = "reachability_gc"
	CustomExpression = "custom"
	// HarnessView shows the log as the harness that compacted it last shows it to its model. The events are selected
	// before reduction, so that only they count towards the budget; the reduced view is shown unchanged.
	HarnessView = "harness_view"
)

// Options choose a policy and configure it. The zero value is raw.
type Options struct {
	// Name is one of the names above; empty is Raw.
	Name string `json:",omitempty"`
	// IgnoreSignatures permits the policy to drop groups with sealed reasoning, but only whole.
	IgnoreSignatures bool `json:",omitempty"`
	// RawFallback shows the reduced view unchanged if signatures prevent any of the policy's changes.
	RawFallback bool `json:",omitempty"`
	// KeepLast is how many of the newest groups the policy does not touch; 0 is its default.
	KeepLast uint32 `json:",omitempty"`
	// Summary is the caller's own text for summary_prefix.
	Summary string `json:",omitempty"`
	// RootWindow is how many of the newest groups are roots. MinChars is the size of the smallest body that is
	// redacted, in runes. nil is the policy's default.
	RootWindow, MinChars *uint32 `json:",omitempty"`
	// ClearAtLeastTokens is the least that a batch of reachability_gc must free, unless the last batch was
	// long ago; nil is the policy's default.
	ClearAtLeastTokens *uint32 `json:",omitempty"`
	// Roots and the next four are the caller's texts. What the names in them refer to is kept.
	Roots              []string `json:",omitempty"`
	ActivePlan         string   `json:",omitempty"`
	Scratchpad         string   `json:",omitempty"`
	PendingToolArgs    []string `json:",omitempty"`
	UnresolvedFindings []string `json:",omitempty"`
	// RequireWriteBarrier allows redactions of a result only if something was written after it: as
	// WriteBarrierRefs say, or as the log shows.
	RequireWriteBarrier bool     `json:",omitempty"`
	WriteBarrierRefs    []string `json:",omitempty"`
	// Expression is the expression of the policy custom.
	Expression string `json:",omitempty"`
	// Scrub replaces credentials in the log before anything else reads it. ScrubRules identifies the rules;
	// WithScrubber sets it.
	Scrub      bool   `json:",omitempty"`
	ScrubRules string `json:",omitempty"`

	scrubber *scrub.Scrubber
	// written is the newest event with a plan or a scratchpad; see WithLive.
	written eventlog.Seq
	program *expression.Program // Expression, once it is compiled
}

// PolicyName returns the policy's name; Raw if Name is empty.
func (o Options) PolicyName() string {
	if o.Name == "" {
		return Raw
	}
	return o.Name
}

// WithScrubber sets the rules by which Scrub replaces credentials.
func (o Options) WithScrubber(s *scrub.Scrubber) Options {
	if o.Scrub {
		o.scrubber, o.ScrubRules = s, s.Rules()
	}
	return o
}

// ScrubText replaces credentials in a text that is shown with the log, such as a summary, if the options
// say so.
func (o Options) ScrubText(text string) string {
	if !o.Scrub {
		return text
	}
	return o.scrubber.Text(text)
}

// NewConversation returns an empty conversation that reads a log as the options say.
func (o Options) NewConversation(gauge budget.Gauge) *reduce.Conversation {
	conv := reduce.NewConversation(gauge)
	if o.Scrub {
		conv.Filter(o.scrubber.Shown)
	}
	return conv
}

// WithLive sets the plan and the scratchpad from the newest events with them, if the caller gave none. An agent that
// writes one has read the results before it.
func (o Options) WithLive(conv *reduce.Conversation) Options {
	plan, scratchpad := conv.Live(eventlog.StandingPlan), conv.Live(eventlog.StandingScratchpad)
	o.ActivePlan, o.Scratchpad = cmp.Or(o.ActivePlan, plan.Text), cmp.Or(o.Scratchpad, scratchpad.Text)
	o.written = max(plan.Seq, scratchpad.Seq)
	return o
}

// State makes a policy's decisions hold in later requests; it only moves forward. The zero value is for a
// session in which the policy was never applied.
type State struct {
	// Redacted are the places of the results that were ever redacted.
	Redacted []eventlog.Place `json:",omitempty"`
	// Restored are those of Redacted that are shown again, because a root named them.
	Restored []eventlog.Place `json:",omitempty"`
	// Clipped are the places of results that custom clipped, and Dropped the first events of the groups
	// that it dropped.
	Clipped []eventlog.Place `json:",omitempty"`
	Dropped []eventlog.Seq   `json:",omitempty"`
	// BatchTurn is how many model calls the log had when reachability_gc last redacted anything new.
	BatchTurn uint32 `json:",omitempty"`
}

// Applied is a view after a policy, with an account of what the policy did.
type Applied struct {
	View  reduce.View
	State State
	// Step says what the policy did. Raw has none.
	Step *reduce.Step
	// RootsConsulted are the names that kept results, in order of first use.
	RootsConsulted []string
	// SafetyBlocked says that a provider's signatures prevented some of the policy's changes.
	SafetyBlocked bool
	// Reason says why the policy did less than it would have; empty if nothing prevented it.
	Reason string
}

// Policy shows less of a reduced view. It is a pure function: no clock, no randomness.
type Policy interface {
	// Apply returns the view as the policy shows it. turns is how many model calls the log has.
	Apply(v reduce.View, turns uint32, before State) Applied
}

// Rooted is a Policy whose roots change with each request of a session. It caches facts about the session.
type Rooted interface {
	Policy
	// WithRoots returns the policy for new options, which may differ only in what Options.Lasting omits.
	WithRoots(o Options) Policy
	// Named returns the results in a view that the caller's roots name: no reducer may evict these. It is nil if
	// there are no roots.
	Named(v reduce.View) map[eventlog.Place]bool
}

// OptionsError says which option is wrong and why.
type OptionsError struct{ Field, Reason string }

func (e *OptionsError) Error() string { return "projection." + e.Field + ": " + e.Reason }

// Compile checks the options and compiles the expression, for New. It returns an *OptionsError.
func (o Options) Compile() (Options, error) {
	switch o.PolicyName() {
	case Raw, Full, HarnessView, CleanToolRepair, SquashFailed, SummaryPrefix, ReachabilityGC:
	case CustomExpression:
		var err error
		if o.program, err = expression.Compiled(o.Expression); err != nil {
			return o, &OptionsError{"expression", err.Error()}
		}
	default:
		return o, &OptionsError{"policy", fmt.Sprintf("%q is no projection policy", o.Name)}
	}
	return o, nil
}

// New returns the policy that the options choose, or an *OptionsError.
func New(o Options) (Policy, error) {
	o, err := o.Compile()
	if err != nil {
		return nil, err
	}
	var p Policy = raw{}
	switch o.PolicyName() {
	case CleanToolRepair:
		p = &cleanToolRepair{options: o}
	case SquashFailed:
		p = &squashFailedCalls{options: o}
	case SummaryPrefix:
		p = &summaryPrefix{options: o}
	case ReachabilityGC:
		p = newReachability(o, newNameIndex())
	case CustomExpression:
		p = custom{options: o, keepLast: o.keepLast(defaultKeepLast), known: &customFacts{}}
	}
	if o.RawFallback {
		p = rawFallback{p}
	}
	return p, nil
}

// raw shows the reduced view unchanged.
type raw struct{}

func (raw) Apply(v reduce.View, _ uint32, before State) Applied {
	return Applied{View: v, State: before}
}

// rawFallback applies a policy or, if signatures prevent any of its changes, shows the reduced view unchanged.
// Earlier decisions stay in the state, and apply again in the next request in which nothing is prevented.
type rawFallback struct{ Policy }

func (p rawFallback) Apply(v reduce.View, turns uint32, before State) Applied {
	got := p.Policy.Apply(v, turns, before)
	if !got.SafetyBlocked {
		return got
	}
	step := reduce.Step{TokensBefore: v.Tokens(), TokensAfter: v.Tokens(), Note: got.Reason + "; everything is shown, as raw_fallback asks"}
	if got.Step != nil {
		step.Reducer = got.Step.Reducer
	}
	return Applied{View: v, State: before, Step: &step, RootsConsulted: got.RootsConsulted, SafetyBlocked: true, Reason: got.Reason}
}

// Named calls Named of the wrapped policy, if that is Rooted.
func (p rawFallback) Named(v reduce.View) map[eventlog.Place]bool {
	if r, ok := p.Policy.(Rooted); ok {
		return r.Named(v)
	}
	return nil
}

// WithRoots calls WithRoots of the wrapped policy, if that is Rooted.
func (p rawFallback) WithRoots(o Options) Policy {
	if r, ok := p.Policy.(Rooted); ok {
		return rawFallback{r.WithRoots(o)}
	}
	return p
}

// Lasting omits the options that may change from request to request: the caller's roots and the writes that it knows
// of. Decisions hold only for options with the same Lasting.
func (o Options) Lasting() Options {
	o.Roots, o.ActivePlan, o.Scratchpad, o.PendingToolArgs, o.UnresolvedFindings, o.WriteBarrierRefs = nil, "", "", nil, nil, nil
	return o
}

// keepLast returns how many of the newest groups the policy does not touch.
func (o Options) keepLast(byDefault uint32) int {
	if o.KeepLast == 0 {
		return int(byDefault)
	}
	return int(o.KeepLast)
}
