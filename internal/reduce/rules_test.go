package reduce_test

import (
	"path"
	"slices"
	"testing"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// TestRule compares the choice of a tool's rule with sorting all rules by their
// precedence and taking the first that matches.
func TestRule(t *testing.T) {
	names := []string{"read", "read_file", "*", "r*", "*d", "re?d", "rea[d]", "re*", "[", "re*d*", "read*"}
	rapid.Check(t, func(t *rapid.T) {
		p := reduce.ToolResults{Default: reduce.Retention{Turns: 1000}, ByTool: map[string]reduce.Retention{}}
		patterns := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, len(names), rapid.ID[string]).Draw(t, "patterns")
		for i, pattern := range patterns {
			p.ByTool[pattern] = reduce.Retention{Turns: uint32(i)}
		}
		tool := rapid.SampledFrom([]string{"read", "read_file", "write", "bread", "[", ""}).Draw(t, "tool")
		slices.SortFunc(patterns, func(a, b string) int {
			switch {
			case a == tool || b != tool && (len(a) > len(b) || len(a) == len(b) && a < b):
				return -1
			default:
				return 1
			}
		})
		want := p.Default
		for _, pattern := range patterns {
			if ok, err := path.Match(pattern, tool); pattern == tool || err == nil && ok {
				want = p.ByTool[pattern]
				break
			}
		}
		if got := p.Rule(tool); got != want {
			t.Fatalf("%q goes by rule %d of %q, want %d", tool, got.Turns, patterns, want.Turns)
		}
	})
}

// TestClipFor compares the limit of a result with the smallest of all that apply.
func TestClipFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := reduce.State{ClipTokens: rapid.Uint64Range(0, 5).Draw(t, "first")}
		for range rapid.IntRange(0, 4).Draw(t, "clips") {
			from := eventlog.Seq(rapid.Uint64Range(0, 9).Draw(t, "from"))
			s.Clips = append(s.Clips, reduce.Clip{
				From: from, Through: from + eventlog.Seq(rapid.Uint64Range(0, 9).Draw(t, "more")), Tokens: rapid.Uint64Range(1, 9).Draw(t, "tokens"),
			})
		}
		seq := eventlog.Seq(rapid.Uint64Range(1, 20).Draw(t, "seq"))
		var limits []uint64
		if s.ClipTokens > 0 {
			limits = append(limits, s.ClipTokens)
		}
		for _, c := range s.Clips {
			for at := c.From + 1; at <= c.Through; at++ {
				if at == seq {
					limits = append(limits, c.Tokens)
				}
			}
		}
		want := uint64(0)
		if len(limits) > 0 {
			want = slices.Min(limits)
		}
		if got := s.ClipFor(seq); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}

// TestRewrittenTokens compares what a batch makes the provider read again with the
// messages of the groups from the first one on that shows something else.
func TestRewrittenTokens(t *testing.T) {
	_, conv := conversation(t, edited)
	rapid.Check(t, func(t *rapid.T) {
		before := reduce.NewView(gauge, conv.Groups())
		e := before.Editor()
		if rapid.Bool().Draw(t, "stubs") {
			e.Replace(read, &before.Group(read).Calls[0], reduce.Stubbed, "gone", "test", "why")
		}
		if rapid.Bool().Draw(t, "omits") {
			e.OmitThinking(read, "test", "why")
		}
		if rapid.Bool().Draw(t, "clips") {
			e.ClipAnchor(task, 0, 0, "short", "test", "why")
		}
		old, now := reducetest.Show(before), reducetest.Show(e.View())
		var want uint64
		var from *reduce.Group
		for i := range now {
			if from == nil && old[i].Bytes() != now[i].Bytes() {
				from = now[i].Group
			}
		}
		for i := range now {
			if from != nil && now[i].Group.First >= from.First {
				want += now[i].Tokens(gauge)
			}
		}
		if got := reduce.RewrittenTokens(before, e.View()); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}
