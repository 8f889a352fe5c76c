package reduce_test

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/reduce"
)

// TestGlobsArePathMatch: whatever is found out of globs before they are matched, the rule
// of a tool is that of the longest glob that path.Match takes it for.
func TestGlobsArePathMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SampledFrom([]string{"a", "b", "é", "*", "**", "?", "[ab]", "[^a]", `\*`, `\`, "[", "/", "-", "\xc3", "\xa9"})
		policy := reduce.ToolResults{ByTool: map[string]reduce.Retention{}}
		for i, p := range rapid.SliceOfN(rapid.SliceOfN(pieces, 0, 6), 0, 8).Draw(t, "globs") {
			policy.ByTool[strings.Join(p, "")] = reduce.Retention{Last: uint32(i + 1)}
		}
		tool := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "é", "*", "/", "-", `\`, "\xc3", "\xa9"}), 0, 6).Draw(t, "tool"), "")
		best, want := "", policy.Default
		found := false
		for pattern, rule := range policy.ByTool {
			if ok, err := path.Match(pattern, tool); err != nil || !ok {
				continue
			}
			if !found || len(pattern) > len(best) || len(pattern) == len(best) && pattern < best {
				best, want, found = pattern, rule, true
			}
		}
		if exact, ok := policy.ByTool[tool]; ok {
			want = exact
		}
		if got := policy.Rule(tool); got != want {
			t.Fatalf("%q has %+v of %+v; want %+v, by %q", tool, got, policy.ByTool, want, best)
		}
	})
}

// manyGlobs are as many and as long as a policy may have.
func manyGlobs() map[string]reduce.Retention {
	all := map[string]reduce.Retention{}
	for i := range 256 {
		all[fmt.Sprintf("%d%s", i, strings.Repeat("*a", 199))] = reduce.Retention{Turns: 2}
		all[fmt.Sprintf("%s%d", strings.Repeat("*a", 199), i)] = reduce.Retention{Turns: 2}
	}
	return all
}

// TestToolsAreDecidedOnOnce: how often a pipeline runs over however many results, the globs
// are asked about each tool once, and anew where the policy is another.
func TestToolsAreDecidedOnOnce(t *testing.T) {
	conv := reduce.NewConversation(gauge)
	for _, e := range longSession(400) {
		conv.Append(e)
	}
	policy := reduce.DefaultPolicy()
	for _, globs := range []map[string]reduce.Retention{manyGlobs(), {"read_*": {Never: true}}} {
		policy.ToolResults.ByTool = globs
		for range 3 {
			if _, err := reduce.NewPipeline(policy, conv).Run(budget.Budget{Target: 32_000}, reduce.State{}, reduce.Ask{}); err != nil {
				t.Fatal(err)
			}
			if n := conv.ToolsDecided(); n != 1 {
				t.Fatalf("%d tools were decided on; one is called", n)
			}
		}
	}
}

// BenchmarkGlobs assembles a session of 10,000 results under a policy of 512 globs of 400
// characters, after each further turn.
func BenchmarkGlobs(b *testing.B) {
	conv := reduce.NewConversation(gauge)
	for _, e := range longSession(20_000) {
		conv.Append(e)
	}
	policy := reduce.DefaultPolicy()
	policy.ToolResults.ByTool = manyGlobs()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reduce.NewPipeline(policy, conv).Run(budget.Budget{Target: 32_000}, reduce.State{}, reduce.Ask{}); err != nil {
			b.Fatal(err)
		}
	}
}
