// Package budget measures contexts and says how large they may be. It has counters of tokens, the Gauge that counts
// blocks and events with a counter, the registry of models, and the Budget, which is computed from a model and a
// request.
//
// The package is pure. It contains the heuristic counter. Exact counters are in package bpe; callers pass them in.
package budget

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Tier names a part of the context that can have a cap of its own.
type Tier string

// The tiers of a context.
const (
	TierSystem      Tier = "system"       // the system prompt
	TierSummary     Tier = "summary"      // what replaces collapsed groups
	TierToolResults Tier = "tool_results" // results of tool calls
	TierDialogue    Tier = "dialogue"     // everything else
)

// Tiers lists all tiers in the order in which they are reported.
func Tiers() []Tier { return []Tier{TierSystem, TierSummary, TierToolResults, TierDialogue} }

// State is how full the target is.
type State uint8

// The states of a budget.
const (
	Green State = iota + 1
	Yellow
	Red
)

// String returns green, yellow or red; unknown for any other value.
func (s State) String() string {
	switch s {
	case Green:
		return "green"
	case Yellow:
		return "yellow"
	case Red:
		return "red"
	default:
		return "unknown"
	}
}

// The thresholds used if the caller gives none, and the registry's entry for unknown models.
const (
	DefaultYellowAt = 0.7
	DefaultRedAt    = 0.9
	DefaultModel    = "default"
)

// Spec is a budget as a request gives it. Zero values and nil mean "not given": then the value of the model's entry
// in the registry is used.
type Spec struct {
	Model string
	// MaxTokens is the hard ceiling, the model's window.
	MaxTokens        uint64
	OutputReserve    uint64
	InjectionReserve uint64
	// OverheadTokens is the size of what the caller sends in addition to the messages, such as tool schemas.
	OverheadTokens  uint64
	SafetyMargin    *float64
	YellowAt, RedAt float64
	TierCaps        map[Tier]float64 // fractions of the target
	Tokenizer       string
	// Format names how the messages are encoded; empty for contextd's own.
	Format string
}

// Budget is a resolved Spec: the limits of the messages of one request. It is a value. The core computes with it and
// never looks up a model.
type Budget struct {
	// Target is the most tokens of the rendered messages: (MaxTokens − reserves − overhead) × (1 − margin), rounded
	// down.
	Target uint64
	// MaxTokens is the window from which the target was computed.
	MaxTokens uint64
	// InjectionReserve is the most tokens of injections, in addition to the target.
	InjectionReserve uint64
	// OverheadTokens is the size of what the caller sends in addition to the messages. Target does not include it.
	OverheadTokens uint64
	Tokenizer      string
	// Format names how the messages are encoded; the tokens counted around them depend on it.
	Format string
	Model  string
	// Reasoning says what of reasoning is counted.
	Reasoning       CountedReasoning
	YellowAt, RedAt float64
	// Calibration is the ratio of real to estimated tokens, learnt from model calls; see Calibrated. It is 1 if
	// nothing was learnt, and 0 in records of builds without calibration.
	Calibration float64
	// Caps are the most tokens of single tiers; a tier that is not in it has no cap.
	Caps map[Tier]uint64
	// CapFractions are the caps as fractions of the target.
	CapFractions map[Tier]float64
}

// SpecError says which field of a Spec is wrong and why.
type SpecError struct{ Field, Reason string }

func (e *SpecError) Error() string { return "budget." + e.Field + ": " + e.Reason }

// Resolve takes the values that the spec does not give from the registry, and computes the target. It returns a
// *SpecError for invalid values, such as reserves that leave no tokens for the messages.
func (s Spec) Resolve(models Models) (Budget, error) {
	model, _ := models.Lookup(s.Model) // an unknown model is counted like the default one
	b := Budget{
		MaxTokens:        s.MaxTokens,
		InjectionReserve: s.InjectionReserve,
		OverheadTokens:   s.OverheadTokens,
		Tokenizer:        s.Tokenizer,
		Format:           s.Format,
		Model:            s.Model,
		Reasoning:        SentReasoning,
		Calibration:      1,
		YellowAt:         orDefault(s.YellowAt, DefaultYellowAt),
		RedAt:            orDefault(s.RedAt, DefaultRedAt),
	}
	if model.ReturnReasoning {
		b.Reasoning = ReturnedReasoning
	}
	if b.MaxTokens == 0 {
		b.MaxTokens = model.Window
	}
	if b.Tokenizer == "" {
		b.Tokenizer = model.Tokenizer
	}
	margin := model.Margin
	if s.SafetyMargin != nil {
		margin = *s.SafetyMargin
	}
	if err := checkFractions(b, margin); err != nil {
		return Budget{}, err
	}
	if b.MaxTokens == 0 {
		return Budget{}, &SpecError{"max_tokens", "is not given, and the model is not known"}
	}
	left := b.MaxTokens
	for _, part := range []struct {
		field string
		n     uint64
	}{
		{"output_reserve", s.OutputReserve},
		{"injection_reserve", s.InjectionReserve},
		{"overhead_tokens", s.OverheadTokens},
	} {
		if part.n >= left {
			return Budget{}, &SpecError{part.field, fmt.Sprintf("%d tokens leave nothing of the %d that remain of max_tokens %d", part.n, left, b.MaxTokens)}
		}
		left -= part.n
	}
	b.Target = share(left, 1-margin)
	switch {
	case b.Target > 0:
	case s.SafetyMargin != nil:
		return Budget{}, &SpecError{"safety_margin", "leaves no tokens for the messages"}
	default:
		return Budget{}, &SpecError{"max_tokens", fmt.Sprintf("%d leaves no tokens for the messages, as a share of %g is kept free for what counts miss", b.MaxTokens, margin)}
	}
	if len(s.TierCaps) > 0 {
		b.Caps = make(map[Tier]uint64, len(s.TierCaps))
		b.CapFractions = maps.Clone(s.TierCaps)
	}
	for _, tier := range slices.Sorted(maps.Keys(s.TierCaps)) {
		fraction := s.TierCaps[tier]
		if err := checkCap(tier, fraction); err != nil {
			return Budget{}, err
		}
		b.Caps[tier] = share(b.Target, fraction)
	}
	return b, nil
}

// StateOf returns the state of the budget when used tokens are used.
func (b Budget) StateOf(used uint64) State {
	switch {
	case used >= share(b.Target, b.RedAt):
		return Red
	case used >= share(b.Target, b.YellowAt):
		return Yellow
	default:
		return Green
	}
}

// Share returns a fraction of the target in whole tokens, rounded down.
func (b Budget) Share(fraction float64) uint64 { return share(b.Target, fraction) }

const million = 1_000_000

// PartsPerMillion returns a fraction of a budget in parts per million. Smaller differences do not count.
func PartsPerMillion(fraction float64) uint64 { return uint64(math.Round(fraction * million)) }

// share computes with integers, in parts per million, so that all machines round in the same way.
func share(n uint64, fraction float64) uint64 {
	ppm := PartsPerMillion(fraction)
	return n/million*ppm + n%million*ppm/million
}

func checkFractions(b Budget, margin float64) error {
	if !(margin >= 0 && margin < 1) {
		return &SpecError{"safety_margin", "must be at least 0 and less than 1"}
	}
	if !(b.YellowAt > 0 && b.YellowAt <= 1) {
		return &SpecError{"yellow_at", "must be a fraction of the target, greater than 0 and at most 1"}
	}
	if !(b.RedAt >= b.YellowAt && b.RedAt <= 1) {
		return &SpecError{"red_at", fmt.Sprintf("must be at most 1 and not below yellow_at; where they are not given, red_at is %v and yellow_at %v", DefaultRedAt, DefaultYellowAt)}
	}
	return nil
}

func checkCap(tier Tier, fraction float64) error {
	field := fmt.Sprintf("tier_caps[%q]", tier)
	switch tier {
	case TierSystem, TierSummary, TierToolResults, TierDialogue:
	default:
		return &SpecError{field, "is no tier; the tiers are system, summary, tool_results and dialogue"}
	}
	if !(fraction > 0 && fraction <= 1) {
		return &SpecError{field, "must be a fraction of the target, greater than 0 and at most 1"}
	}
	return nil
}

func orDefault(v, fallback float64) float64 {
	if v == 0 {
		return fallback
	}
	return v
}
