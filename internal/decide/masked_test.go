package decide_test

import (
	"testing"

	"github.com/contextd/contextd/internal/reduce"
)

// TestWhyNothingIsMasked: the reason counts each result before the newest turns once, by what keeps it or by what was
// done to it.
func TestWhyNothingIsMasked(t *testing.T) {
	call := func(id, tool, options string, result ...string) []string {
		return append([]string{"assistant" + options + ": call " + id + " " + tool + ` {"path":"` + id + `.go"}`}, result...)
	}
	log := []string{"user: Find the leak."}
	for _, group := range [][]string{
		call("c1", "read", "", "tool: c1 @200 long"),
		call("c2", "read", "", "tool: c2 @200 long"),
		call("c3", "read", " (pinned)", "tool: c3 @200 long"),
		call("c4", "skill", "", "tool: c4 @200 long"),
		call("c5", "skill", "", "tool: c5 @200 long"),
		call("c6", "skill", "", "tool: c6 @200 long"),
		call("c7", "read", "", "tool: c7! @200 failed"),
		call("c8", "read", "", "tool: c8 ok"),
		call("c9", "read", ""), // interrupted
		call("c10", "read", "", "tool: c10 @200 long"),
	} {
		log = append(log, group...)
	}
	in := inputs(t, 100_000, events(t, log...))
	in.Reduction.ToolResults.ByTool = map[string]reduce.Retention{"skill": {Never: true}}
	in.Caller = reduce.Ask{Goal: 1_000, KeepLastTurns: 1, Strategy: reduce.Mask}
	for _, want := range []string{"",
		"of the 8 results before the last turn 2 are masked already, 1 are pinned, 3 are of tools that are never evicted, 0 are named by roots, 1 are errors and 1 are no larger than a pointer",
	} {
		plan, err := in.Plan("")
		if err != nil {
			t.Fatal(err)
		}
		if plan.Nothing != want {
			t.Errorf("%q, want %q", plan.Nothing, want)
		}
		if plan.Nothing == "" {
			in.Decided, _, err = in.Decide(nil)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
