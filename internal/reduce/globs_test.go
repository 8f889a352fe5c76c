package reduce_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
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

// FuzzGlobs: one glob of any bytes takes a name of any bytes if path.Match does.
func FuzzGlobs(f *testing.F) {
	for _, seed := range [][2]string{{"*a*b*", "xaxbx"}, {"a*a", "a"}, {"*/a*", "x/ab"}, {"a?*[b-c]d", "axbd"}, {`*\*`, "a*"}, {"[]a]", "]"}, {"**", "a/b"}, {"*\xa9", "é"}, {`\*`, "*a"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		ok, err := path.Match(pattern, name)
		want := err == nil && ok || pattern == name
		policy := reduce.ToolResults{ByTool: map[string]reduce.Retention{pattern: {Never: true}}}
		if got := policy.Rule(name).Never; got != want {
			t.Errorf("%q takes %q: %v; path.Match says %v, %v", pattern, name, got, ok, err)
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
// are asked about each tool once, and again where the policy is another.
func TestToolsAreDecidedOnOnce(t *testing.T) {
	conv := reduce.NewConversation(gauge)
	for _, e := range longSession(400) {
		conv.Append(e)
	}
	policy := reducetest.Policy()
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

// BenchmarkGlobs measures the first run over a session of 10,000 results, which decides each
// tool once: without globs and with as many and as long ones as there may be, where all
// results are of one tool and where each is of another, with a name as long as the globs.
// No glob matches those names: half are ruled out by how they end, half by a search of the
// whole name. One tool's globs are lost in what a run takes; 10,000 such names triple it, by
// about a microsecond for each name and glob.
func BenchmarkGlobs(b *testing.B) {
	log := longSession(20_000)
	others := make([]eventlog.Event, len(log))
	for i, e := range log {
		m := *e.Body.(*eventlog.Message)
		m.Blocks = slices.Clone(m.Blocks)
		for n, block := range m.Blocks {
			if call, ok := block.(eventlog.ToolCall); ok {
				call.Name = fmt.Sprintf("%s%05d%s", strings.Repeat("a", 200), i, strings.Repeat("a", 200))
				m.Blocks[n] = call
			}
		}
		e.Body = &m
		others[i] = e
	}
	near := map[string]reduce.Retention{}
	for i := range 256 {
		near[fmt.Sprintf("*%sb%s%d*", strings.Repeat("a", 199), strings.Repeat("a", 190), i)] = reduce.Retention{Turns: 2}
		near[fmt.Sprintf("a*%s%d", strings.Repeat("a*", 199), i)] = reduce.Retention{Turns: 2}
	}
	for name, c := range map[string]struct {
		log   []eventlog.Event
		globs map[string]reduce.Retention
	}{"one tool/none": {log, nil}, "one tool/512": {log, manyGlobs()}, "10,000 tools/none": {others, nil}, "10,000 tools/512": {others, near}} {
		b.Run(name, func(b *testing.B) {
			policy := reducetest.Policy()
			policy.ToolResults.ByTool = c.globs
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				conv := reduce.NewConversation(gauge)
				for _, e := range c.log {
					conv.Append(e)
				}
				b.StartTimer()
				if _, err := reduce.NewPipeline(policy, conv).Run(budget.Budget{Target: 32_000}, reduce.State{}, reduce.Ask{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
