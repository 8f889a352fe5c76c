package expression

import "cel.dev/cel-go/checker"

// The most items and bytes, and so runes, that the estimate reckons with.
const (
	maxRoles, maxRole              = 4, 9
	maxTools, maxTool              = 16, 64
	maxLabels, maxKey, maxLabelled = 16, 32, 64
	// What a group says is of any size, so its cost is always watched; this estimates what
	// is read of it, and what is made of that.
	maxText = 4096
)

// ordinary estimates the cost for a group within these sizes. It is an upper bound, so
// that such a group needs no watching while it is evaluated, which would double the
// time. A larger one is watched and may run into the limit.
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
	path := ""
	for i, part := range node.Path() {
		if i > 0 {
			path += "."
		}
		path += part
	}
	if most, ok := sizes[path]; ok {
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
