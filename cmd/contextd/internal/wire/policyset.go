package wire

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/reduce"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// DefaultPolicyName is the policy that always exists. Configuration may give the
// name another meaning.
const DefaultPolicyName = "default"

// Policies are the named policies of a daemon. The zero value knows the built-in
// one only.
type Policies struct {
	named       map[string]assemble.Policy
	fallback    string
	summarizers Summarizers
}

// Summarizers are those of the daemon's configuration.
type Summarizers struct {
	Names []string
	// Default is the one that policies use which name none.
	Default string
}

// NewPolicies takes the named policies of the configuration, each of them laid
// over the built-in one, and the name of the one that applies where nobody names
// any; empty is DefaultPolicyName. Errors name the field from "policies[name]"
// or "default_policy" on.
func NewPolicies(named map[string]*contextdv1.Policy, fallback string, summarizers Summarizers) (Policies, error) {
	out := Policies{named: make(map[string]assemble.Policy, len(named)), fallback: fallback, summarizers: summarizers}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		field := fmt.Sprintf("policies[%q]", name)
		if name == "" {
			return Policies{}, invalid(field, "must have a name")
		}
		if base := named[name].GetName(); base != "" {
			return Policies{}, invalid(field+".name", "must be empty: a named policy always lies over the built-in one")
		}
		p, err := out.overlay(out.builtin(), named[name])
		if err != nil {
			return Policies{}, Under(field, err)
		}
		out.named[name] = p
	}
	if _, err := out.lookup(fallback); err != nil {
		return Policies{}, invalid("default_policy", "%v", err)
	}
	return out, nil
}

// Resolve lays a request's policy over its session's; either may be nil. Errors
// name the field from "policy" on.
func (p Policies) Resolve(session, request *contextdv1.Policy) (assemble.Policy, error) {
	base, err := p.lookup(p.fallback)
	if err != nil {
		return assemble.Policy{}, err
	}
	if request.GetName() == "" && session != nil {
		if base, err = p.over(base, session); err != nil {
			return assemble.Policy{}, fmt.Errorf("the session's own policy: %w", err)
		}
	}
	return p.over(base, request)
}

// over lays one message over the base, or over the policy that it names.
func (p Policies) over(base assemble.Policy, m *contextdv1.Policy) (assemble.Policy, error) {
	if m == nil {
		return base, nil
	}
	if m.GetName() != "" {
		named, err := p.lookup(m.GetName())
		if err != nil {
			return assemble.Policy{}, invalid("policy.name", "%v", err)
		}
		base = named
	}
	out, err := p.overlay(base, m)
	if err != nil {
		return assemble.Policy{}, Under("policy", err)
	}
	return out, nil
}

func (p Policies) lookup(name string) (assemble.Policy, error) {
	if name == "" {
		name = DefaultPolicyName
	}
	if found, ok := p.named[name]; ok {
		return found, nil
	}
	if name == DefaultPolicyName {
		return p.builtin(), nil
	}
	return assemble.Policy{}, fmt.Errorf("%q is not a policy of the daemon's configuration; it knows %s", name, strings.Join(p.Names(), ", "))
}

// Names lists the policies that a request may name.
func (p Policies) Names() []string {
	names := slices.Collect(maps.Keys(p.named))
	if _, ok := p.named[DefaultPolicyName]; !ok {
		names = append(names, DefaultPolicyName)
	}
	slices.Sort(names)
	return names
}

func (p Policies) builtin() assemble.Policy {
	return assemble.Policy{
		Reduction: reduce.DefaultPolicy(),
		Summaries: assemble.SummaryPolicy{Summarizer: p.summarizers.Default},
	}
}
