// Package projection decides which part of a reduced view the next request shows: one file
// for each policy, and what keeps all of them from breaking a provider's rules.
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
	// Full shows the log as it is, but for what callers compacted, or refuses: nothing is
	// reduced before it.
	Full             = "full"
	CleanToolRepair  = "clean_tool_repair"
	SquashFailed     = "squash_failed_calls"
	SummaryPrefix    = "summary_prefix"
	ReachabilityGC   = "reachability_gc"
	CustomExpression = "custom"
	// HarnessView shows the log as the harness that compacted it last goes on. Which
	// events that are is decided before reduction, so that the budget holds for them
	// alone; to the reduced view it adds nothing.
	HarnessView = "harness_view"
)

// Options choose a policy and say how it goes about. The zero value is raw.
type Options struct {
	// Name is one of the names above; empty is Raw.
	Name string `json:",omitempty"`
	// IgnoreSignatures lets the policy touch groups with sealed reasoning, which then
	// leave whole.
	IgnoreSignatures bool `json:",omitempty"`
	// RawFallback shows the reduced view as it is wherever signatures keep the policy from
	// any of what it would do.
	RawFallback bool `json:",omitempty"`
	// KeepLast is how many of the newest groups the policy leaves alone; 0 is its
	// default.
	KeepLast uint32 `json:",omitempty"`
	// Summary is the caller's own text for summary_prefix.
	Summary string `json:",omitempty"`
	// RootWindow is how many of the newest groups are roots, and MinChars the size in
	// runes below which a body is left alone; nil is the policy's default.
	RootWindow, MinChars *uint32 `json:",omitempty"`
	// ClearAtLeastTokens is what a batch of reachability_gc frees at least, unless the
	// last one was long ago; nil is the policy's default.
	ClearAtLeastTokens *uint32 `json:",omitempty"`
	// Roots and what follows are texts whose names are roots.
	Roots              []string `json:",omitempty"`
	ActivePlan         string   `json:",omitempty"`
	Scratchpad         string   `json:",omitempty"`
	PendingToolArgs    []string `json:",omitempty"`
	UnresolvedFindings []string `json:",omitempty"`
	// RequireWriteBarrier redacts nothing unless a write is known: one of
	// WriteBarrierRefs, or one in the log.
	RequireWriteBarrier bool     `json:",omitempty"`
	WriteBarrierRefs    []string `json:",omitempty"`
	// Expression is that of custom.
	Expression string `json:",omitempty"`
	// Scrub replaces credentials in the log before anything is made of it, by rules that
	// WithScrubber names.
	Scrub      bool   `json:",omitempty"`
	ScrubRules string `json:",omitempty"`

	scrubber *scrub.Scrubber
	// written is the newest event that holds a plan or a scratchpad; see WithLive.
	written eventlog.Seq
	program *expression.Program // Expression, once it is compiled
}

// PolicyName is the policy's; Raw if none is named.
func (o Options) PolicyName() string {
	if o.Name == "" {
		return Raw
	}
	return o.Name
}

// WithScrubber takes the rules by which Scrub replaces credentials.
func (o Options) WithScrubber(s *scrub.Scrubber) Options {
	if o.Scrub {
		o.scrubber, o.ScrubRules = s, s.Rules()
	}
	return o
}

// ScrubText replaces credentials in what is shown beside the log, if the options say so.
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

// WithLive takes from the log what the options leave open: the plan and the scratchpad that
// its newest events of these names hold. Whoever writes one has read what came before.
func (o Options) WithLive(conv *reduce.Conversation) Options {
	plan, scratchpad := conv.Live(eventlog.StandingPlan), conv.Live(eventlog.StandingScratchpad)
	o.ActivePlan, o.Scratchpad = cmp.Or(o.ActivePlan, plan.Text), cmp.Or(o.Scratchpad, scratchpad.Text)
	o.written = max(plan.Seq, scratchpad.Seq)
	return o
}

// State is what makes a policy's decisions stick; it only moves forward. The zero
// value is that of a session that the policy never saw.
type State struct {
	// Redacted are the results, by event and block, that were redacted.
	Redacted []eventlog.Place `json:",omitempty"`
	// Restored are those of them that came back, because something named them.
	Restored []eventlog.Place `json:",omitempty"`
	// Clipped are the results of which custom kept head and tail, and Dropped the first
	// events of the groups that it dropped.
	Clipped []eventlog.Place `json:",omitempty"`
	Dropped []eventlog.Seq   `json:",omitempty"`
	// BatchTurn is how many model calls the log held when reachability_gc last redacted
	// anything new.
	BatchTurn uint32 `json:",omitempty"`
}

// Applied is a view under a policy and how it came about.
type Applied struct {
	View  reduce.View
	State State
	// Step says what the policy did. Raw has none.
	Step *reduce.Step
	// RootsConsulted are the names that the policy went by, in order.
	RootsConsulted []string
	// SafetyBlocked is set where a provider's signatures kept the policy from doing
	// what it would have done.
	SafetyBlocked bool
	// Reason says why the policy did nothing where it might have; empty if it did.
	Reason string
}

// Policy shows less of a reduced view. It is a pure function: no clock, no randomness.
type Policy interface {
	// Apply returns the view as the policy shows it. turns is how many model calls the
	// log holds.
	Apply(v reduce.View, turns uint32, before State) Applied
}

// Rooted is a Policy that takes other roots with every request of a session, and keeps
// what it gathered.
type Rooted interface {
	Policy
	// WithRoots returns the policy for options that differ in no more than what
	// Options.Lasting leaves out.
	WithRoots(o Options) Policy
	// Named returns the results in a view that the caller's roots name, which nothing may
	// take; nil where there are no roots.
	Named(v reduce.View) map[eventlog.Place]bool
}

// OptionsError says which option is wrong and why.
type OptionsError struct{ Field, Reason string }

func (e *OptionsError) Error() string { return "projection." + e.Field + ": " + e.Reason }

// Compile checks the options and compiles what is to be compiled of them, for New. It
// returns an *OptionsError.
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

// raw shows everything.
type raw struct{}

func (raw) Apply(v reduce.View, _ uint32, before State) Applied {
	return Applied{View: v, State: before}
}

// rawFallback does everything that a policy does or, where signatures keep the policy
// from any of it, nothing. What was decided before stays decided, and is shown again
// with the next request in which nothing is blocked.
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

// Named is that of the policy, where it takes roots.
func (p rawFallback) Named(v reduce.View) map[eventlog.Place]bool {
	if r, ok := p.Policy.(Rooted); ok {
		return r.Named(v)
	}
	return nil
}

// WithRoots is that of the policy, where it takes roots.
func (p rawFallback) WithRoots(o Options) Policy {
	if r, ok := p.Policy.(Rooted); ok {
		return rawFallback{r.WithRoots(o)}
	}
	return p
}

// Lasting are the options without what may change from request to request: the
// caller's roots and the writes that it knows of. Decisions that stick belong to
// these.
func (o Options) Lasting() Options {
	o.Roots, o.ActivePlan, o.Scratchpad, o.PendingToolArgs, o.UnresolvedFindings, o.WriteBarrierRefs = nil, "", "", nil, nil, nil
	return o
}

// keepLast is how many of the newest groups the policy leaves alone.
func (o Options) keepLast(byDefault uint32) int {
	if o.KeepLast == 0 {
		return int(byDefault)
	}
	return int(o.KeepLast)
}
