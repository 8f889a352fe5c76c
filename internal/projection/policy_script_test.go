package projection_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// parsePolicy reads the name of a policy and a line for each of its options, such as
// "keep_last 3"; those that are lists may come several times.
func parsePolicy(input string) (projection.Options, error) {
	var o projection.Options
	number := func(s string) *uint32 {
		n, _ := strconv.ParseUint(s, 10, 32)
		out := uint32(n)
		return &out
	}
	for line := range strings.Lines(input) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "ignore_signatures":
			o.IgnoreSignatures = true
		case "raw_fallback":
			o.RawFallback = true
		case "clear_at_least":
			o.ClearAtLeastTokens = number(value)
		case "keep_last":
			o.KeepLast = *number(value)
		case "summary":
			o.Summary = reducetest.ParseText(value)
		case "root_window":
			o.RootWindow = number(value)
		case "min_chars":
			o.MinChars = number(value)
		case "root":
			o.Roots = append(o.Roots, value)
		case "active_plan":
			o.ActivePlan = value
		case "scratchpad":
			o.Scratchpad = value
		case "pending_tool_args":
			o.PendingToolArgs = append(o.PendingToolArgs, value)
		case "unresolved_finding":
			o.UnresolvedFindings = append(o.UnresolvedFindings, value)
		case "require_write_barrier":
			o.RequireWriteBarrier = true
		case "write_barrier_ref":
			o.WriteBarrierRefs = append(o.WriteBarrierRefs, value)
		case "expression":
			o.Expression = value
		default:
			if o.Name != "" {
				return o, fmt.Errorf("%q is no option", key)
			}
			o.Name = key
		}
	}
	return o, nil
}
