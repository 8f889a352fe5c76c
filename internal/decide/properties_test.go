package decide_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/reduce"
)

// drawn is a log of turns with results of random sizes.
func drawn(t *rapid.T) []string {
	return results(rapid.SliceOfN(rapid.IntRange(1, 120), 1, 40).Draw(t, "lines of results")...)
}

// results is a log of turns whose results have these numbers of lines.
func results(sizes ...int) []string {
	log := []string{"system: You are an agent.", "user: Find the leak."}
	for i, lines := range sizes {
		log = append(log, fmt.Sprintf(`assistant: I read on. | call c%d read {"path":"pkg/mod%d.go"}`, i, i), fmt.Sprintf("tool: c%d @%d mod%d", i, lines, i))
	}
	return log
}

// Decisions depend on the inputs alone, fit the target, and only move forward.
func TestDecisionsHold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		log, target := drawn(rt), rapid.Uint64Range(3_000, 30_000).Draw(rt, "target")
		var before reduce.State
		for n := 2; n <= len(log); n += 2 * rapid.IntRange(1, 5).Draw(rt, "turns") {
			in := inputs(t, target, events(t, log[:n]...))
			in.Before = before
			first, err := in.Run()
			if err != nil {
				rt.Fatal(err)
			}
			again, err := in.Run()
			if err != nil || !cmp.Equal(first.Result.State, again.Result.State) || first.Tokens() != again.Tokens() {
				rt.Fatalf("the same inputs give %d tokens, then %d: %v", first.Tokens(), again.Tokens(), err)
			}
			if first.Tokens() > target {
				rt.Fatalf("%d tokens of %d", first.Tokens(), target)
			}
			now := first.Result.State
			if now.CollapsedThrough < before.CollapsedThrough || now.EvictedAsOf < before.EvictedAsOf {
				rt.Fatalf("decisions went back from %+v to %+v", before, now)
			}
			before = now
		}
	})
}

// A compaction reaches its target, or lists all that is in the way; it never makes a context larger.
func TestCompactionsAnswer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		log, target := drawn(rt), rapid.SampledFrom([]uint64{6_000, 20_000, 200_000}).Draw(rt, "target")
		in := inputs(t, target, events(t, log...))
		in.Caller = reduce.Ask{
			Goal:          rapid.Uint64Range(400, 20_000).Draw(rt, "goal"),
			KeepLastTurns: rapid.Uint32Range(1, 5).Draw(rt, "turns that are kept"),
			Strategy:      rapid.SampledFrom([]reduce.Strategy{"", reduce.Mask, reduce.Drop, reduce.Summarize}).Draw(rt, "strategy"),
		}
		var own string
		if in.Caller.Strategy == reduce.Summarize {
			own = strings.Repeat("abc ", rapid.SampledFrom([]int{0, 1, 300, 1_000}).Draw(rt, "words of the caller's summary"))
		}
		in.Summaries = offered(t, target, log[:2*rapid.IntRange(1, len(log)/2).Draw(rt, "turns that a summary was made for")])
		plan, after, short := compact(t, in, own)
		if plan.Nothing != "" {
			if plan.Before.Tokens > in.Caller.Goal && short.Over != plan.Before.Tokens-in.Caller.Goal {
				rt.Fatalf("%q: %d tokens of %d, and %d are said to be too many", plan.Nothing, plan.Before.Tokens, in.Caller.Goal, short.Over)
			}
			return
		}
		if after.Tokens() > plan.Before.Tokens && in.Caller.Strategy != reduce.Summarize {
			rt.Fatalf("%d tokens became %d", plan.Before.Tokens, after.Tokens())
		}
		if over := after.Tokens() - min(in.Caller.Goal, after.Tokens()); over != short.Over || (over > 0) != (len(short.InTheWay) > 0) {
			rt.Fatalf("%d tokens of %d, and %+v", after.Tokens(), in.Caller.Goal, short)
		}
		if after.Messages() > plan.Before.Messages+1 { // what replaces the dropped ones
			rt.Fatalf("%d messages became %d", plan.Before.Messages, after.Messages())
		}
	})
}
