// Package policy resolves the policy of a context from the daemon's named policies, the session's settings
// and the request.
package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/reduce"
)

// The built-in policies. The configuration may redefine their names.
const (
	// DefaultName is the policy where none is named; built-in, it equals BalancedName.
	DefaultName  = "default"
	FrugalName   = "frugal"
	BalancedName = "balanced"
	FaithfulName = "faithful"
)

// presets are the built-in policies.
var presets = map[string]func() reduce.Policy{
	DefaultName: reduce.DefaultPolicy, BalancedName: reduce.DefaultPolicy,
	FrugalName: reduce.FrugalPolicy, FaithfulName: reduce.FaithfulPolicy,
}

// Set is the named policies of a daemon. The zero value has only the built-in ones.
type Set struct {
	named       map[string]layers
	fallback    string
	summarizers Summarizers
	shadow      string // empty is none
	shadowed    assemble.Policy
}

// Summarizers are the summarizers of the daemon's configuration.
type Summarizers struct {
	Names []string
	// Default is the summarizer of policies that name none.
	Default string
}

// NewSet returns the named policies of the configuration, each applied to the built-in default policy.
// fallback is the policy where none is named; empty is DefaultName. Errors are *eventlog.InvalidError, and
// name the field beginning with "policies[name]" or "default_policy".
func NewSet(named map[string]Overlay, fallback string, summarizers Summarizers) (Set, error) {
	out := Set{named: make(map[string]layers, len(named)), fallback: fallback, summarizers: summarizers}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		field := fmt.Sprintf("policies[%q]", name)
		if name == "" {
			return Set{}, invalid(field, "must have a name")
		}
		if named[name].Name != "" {
			return Set{}, invalid(field+".name", "must be empty: a named policy always lies over the built-in one")
		}
		p, err := out.lay(out.preset(DefaultName), named[name], field)
		if err != nil {
			return Set{}, err
		}
		out.named[name] = p
	}
	if _, err := out.lookup(fallback); err != nil {
		return Set{}, invalid("default_policy", "%v", err)
	}
	return out, nil
}

// WithShadow returns the set with a shadow policy, whose contexts are computed for comparison with those in
// use; an empty name is none. The error is an *eventlog.InvalidError for the field "shadow".
func (s Set) WithShadow(name string) (Set, error) {
	if s.shadow = name; name == "" {
		return s, nil
	}
	of, err := s.lookup(name)
	if err != nil {
		return Set{}, invalid("shadow", "%v", err)
	}
	s.shadowed = of.Policy
	return s, nil
}

// Shadow is the shadow policy with its name; the name is empty if there is none. If the policy in use names a
// recall tool, the shadow policy has that tool too.
func (s Set) Shadow(used assemble.Policy) (p assemble.Policy, name string) {
	p = s.shadowed
	if used.Reduction.Recall != "" {
		p.Reduction.Recall = used.Reduction.Recall
	}
	return p, s.shadow
}

// Resolve applies the session's overlay and then the request's to the daemon's default policy, and checks and
// compiles the result. A policy that the request names replaces the session's overlay, except for its recall
// tool, since that belongs to the session's runtime. Errors name the field, beginning with "policy".
func (s Set) Resolve(session, request Overlay) (assemble.Policy, error) {
	base, err := s.lookup(s.fallback)
	if err != nil {
		return assemble.Policy{}, err
	}
	if request.Name == "" {
		if base, err = s.over(base, session); err != nil {
			return assemble.Policy{}, fmt.Errorf("the session's own policy: %w", err)
		}
	}
	if request.Recall == nil {
		request.Recall = session.Recall
	}
	base, err = s.over(base, request)
	return base.Policy, err
}

// over applies an overlay to base, or to the policy that the overlay names.
func (s Set) over(base layers, o Overlay) (layers, error) {
	if o.Name != "" {
		named, err := s.lookup(o.Name)
		if err != nil {
			return layers{}, &UnknownError{invalid("policy.name", "%v", err), o.Name, s.Names()}
		}
		base = named
	}
	return s.lay(base, o, "policy")
}

func (s Set) lookup(name string) (layers, error) {
	if name == "" {
		name = DefaultName
	}
	if found, ok := s.named[name]; ok {
		return found, nil
	}
	if presets[name] != nil {
		return s.preset(name), nil
	}
	return layers{}, fmt.Errorf("%q is not a policy of the daemon's configuration; it knows %s", name, strings.Join(s.Names(), ", "))
}

// UnknownError reports that a request names a policy that does not exist.
type UnknownError struct {
	Err   error // an eventlog.InvalidError
	Name  string
	Known []string
}

func (e *UnknownError) Error() string { return e.Err.Error() }

// Unwrap returns the error with the field.
func (e *UnknownError) Unwrap() error { return e.Err }

// Names lists the policies that a request may name.
func (s Set) Names() []string {
	all := maps.Clone(presets)
	for name := range s.named {
		all[name] = nil
	}
	return slices.Sorted(maps.Keys(all))
}

func (s Set) preset(name string) layers {
	return layers{
		assemble.Policy{Reduction: presets[name](), Summaries: decide.SummaryPolicy{Summarizer: s.summarizers.Default}},
		presets[name](),
	}
}
