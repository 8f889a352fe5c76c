package expression

import (
	"strings"

	"cel.dev/cel-go/checker"
)

// The most items and bytes, and so runes, that the estimate assumes.
const (
	maxRoles, maxRole              = 4, 9
	maxTools, maxTool              = 16, 64
	maxLabels, maxKey, maxLabelled = 16, 32, 64
	// The content of a group may have any size, so an expression that reads it is always watched. This is the size
	// that the estimate assumes for the content and for texts made from it.
	maxText = 4096
)

// ordinary estimates the cost for a group within these sizes. The estimate is an upper bound, so the evaluation for
// such a group need not be watched, which would double the time. For a larger group it is watched, and may reach the
// limit.
type ordinary struct{ content bool }

var sizes = map[string]uint64{
	"roles": maxRoles, "roles.@items": maxRole,
	"tools": maxTools, "tools.@items": maxTool,
	"labels": maxLabels, "labels.@keys": maxKey, "labels.@values": maxLabelled,
	"calls": maxTools, "calls.@items.name": maxTool,
}

// isOrdinary reports whether the estimate holds for the group.
func (f *Fixed) isOrdinary() bool {
	if len(f.Roles) > maxRoles || len(f.Tools) > maxTools || len(f.Labels) > maxLabels {
		return false
	}
	for k, v := range f.Labels {
		if len(k) > maxKey || len(v) > maxLabelled {
			return false
		}
	}
	return within(f.Roles, maxRole) && within(f.Tools, maxTool)
}

func within(all []string, most int) bool {
	for _, s := range all {
		if len(s) > most {
			return false
		}
	}
	return true
}

// EstimateSize implements checker.CostEstimator.
func (o ordinary) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if most, ok := sizes[strings.Join(node.Path(), ".")]; ok {
		return &checker.SizeEstimate{Min: 0, Max: most}
	}
	if o.content && node.ComputedSize() == nil {
		return &checker.SizeEstimate{Min: 0, Max: maxText}
	}
	return nil
}

// EstimateCallCost implements checker.CostEstimator.
func (ordinary) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}
