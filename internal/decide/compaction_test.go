package decide_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
)

// compact plans a compaction, has its summary written, and returns the plan, the context after the
// compaction, and its shortfall.
func compact(t *testing.T, in decide.Inputs, own string) (decide.Plan, decide.Projected, decide.Shortfall) {
	t.Helper()
	plan, err := in.Plan(own)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Nothing != "" {
		return plan, decide.Projected{}, plan.Short
	}
	in.Caller.Strategy = plan.Strategy
	made := in.Summaries
	event, nothing, err := in.Decide(nil)
	if plan.Summary != nil {
		text := written(plan.Summary)
		if own != "" {
			text.Text = own
		}
		made = append(made[:len(made):len(made)], *text)
		event, nothing, err = in.Decide(text)
	}
	if err != nil || nothing != "" {
		t.Fatalf("planned was %s, and nothing is done: %q, %v", plan.Strategy, nothing, err)
	}
	in.Decided, in.Summaries = event, made
	after, err := in.Run()
	if err != nil {
		t.Fatal(err)
	}
	return plan, after, in.Shortfall(after)
}

// A target is reached by a summary of any length that was asked for, even if a summary made for a larger
// context exists.
func TestATargetIsReached(t *testing.T) {
	for _, ready := range []bool{false, true} {
		for _, strategy := range []reduce.Strategy{"", reduce.Drop, reduce.Summarize} {
			for _, goal := range []uint64{800, 1_500, 4_000, 40_000} {
				t.Run(fmt.Sprintf("%s/%d/%v", strategy, goal, ready), func(t *testing.T) {
					in := inputs(t, 100_000, events(t, turns(120)...))
					if ready {
						ahead, _ := in.Ahead(run(t, &in))
						if ahead == nil {
							t.Fatal("no summary is proposed")
						}
						in.Summaries = append(in.Summaries, *written(ahead))
					}
					in.Caller = reduce.Ask{Goal: goal, Strategy: strategy, KeepLastTurns: 1}
					plan, after, short := compact(t, in, "")
					if plan.Nothing != "" || after.Tokens() > goal || short.Over > 0 || len(short.InTheWay) > 0 {
						t.Errorf("%q: %d tokens, %d over: %+v", plan.Nothing, after.Tokens(), short.Over, short.InTheWay)
					}
					if s := plan.Summary; s != nil && !strings.Contains(digest(after), "abc abc") {
						t.Errorf("the summary of %d to %d is not quoted:\n%s", s.From, s.To, digest(after))
					}
				})
			}
		}
	}
}

// offered is the summary that a caller's compaction of a log makes, if the log has enough turns.
func offered(t *testing.T, target uint64, log []string) []summarize.Summary {
	t.Helper()
	in := inputs(t, target, events(t, log...))
	in.Caller.Strategy = reduce.Summarize
	plan, err := in.Plan("")
	if err != nil {
		t.Fatal(err)
	}
	if plan.Summary == nil {
		return nil
	}
	return []summarize.Summary{*written(plan.Summary)}
}

// An existing summary that is larger than what it would replace is not quoted, unless the caller asks for a
// summary.
func TestAnOfferedSummaryIsTooLong(t *testing.T) {
	log := results(1, 1, 1, 1, 29, 91)
	for _, strategy := range []reduce.Strategy{"", reduce.Summarize} {
		in := inputs(t, 6_000, events(t, log...))
		in.Summaries = offered(t, 6_000, log)
		in.Caller = reduce.Ask{Goal: 856, KeepLastTurns: 2, Strategy: strategy}
		plan, after, _ := compact(t, in, "")
		quoted := plan.Nothing == "" && strings.Contains(digest(after), "abc abc")
		if quoted != (strategy == reduce.Summarize) || !quoted && plan.Strategy != reduce.Drop {
			t.Errorf("asked for %q: %s, nothing because %q; it is quoted: %v", strategy, plan.Strategy, plan.Nothing, quoted)
		}
	}
}

// If a target can be reached without a summary, a summary that would miss it is not made, unless the caller
// asks for one.
func TestASummaryLeavesTheTargetWithinReach(t *testing.T) {
	log := append(turns(60), `assistant: I read on. | call large read {"path":"large.go"}`, "tool: large @400 large")
	for strategy, want := range map[reduce.Strategy]bool{"": true, reduce.Drop: true, reduce.Summarize: false} {
		in := inputs(t, 100_000, events(t, log...))
		in.Caller = reduce.Ask{Goal: 2_800, KeepLastTurns: 1, Strategy: strategy}
		if _, after, short := compact(t, in, ""); (short.Over == 0) != want {
			t.Errorf("%q: %d tokens, %d over", strategy, after.Tokens(), short.Over)
		}
	}
}

func digest(p decide.Projected) string {
	d, _ := p.Result.View.Digest()
	return d.Text
}

// If a target is missed, the answer lists the parts that the request does not allow to drop.
func TestWhatStandsInTheWay(t *testing.T) {
	large := append(turns(60),
		`assistant: I read on. | call large read {"path":"large.go"}`, "tool: large @400 large")
	for name, c := range map[string]struct {
		log  []string
		own  string
		ask  reduce.Ask
		want string
	}{
		"the turns that are kept": {
			large, "", reduce.Ask{Goal: 1_000, KeepLastTurns: 1},
			"turn 123: 2310, record of earlier calls: 263, summary: 224, system prompt 1: 9, first user message 2: 8",
		},
		"a summary of the caller's": {
			turns(60), strings.Repeat("abc ", 2_000), reduce.Ask{Goal: 1_000, KeepLastTurns: 1},
			"summary: 2015, turn 121: 456, record of earlier calls: 263, system prompt 1: 9, first user message 2: 8",
		},
		"a long task": {
			append([]string{"system: You are an agent.", "user: @200 task"}, turns(40)[2:]...), "", reduce.Ask{Goal: 1_000, KeepLastTurns: 1},
			"first user message 2: 1077, turn 81: 456, record of earlier calls: 247, summary: 223, system prompt 1: 9",
		},
		"a target with hardly any room for a record": {
			turns(60), "", reduce.Ask{Goal: 520, KeepLastTurns: 1},
			"turn 121: 456, record of earlier calls: 72, system prompt 1: 9, first user message 2: 8",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputs(t, 100_000, events(t, c.log...))
			in.Caller = c.ask
			if c.own != "" {
				in.Caller.Strategy = reduce.Summarize
			}
			_, after, short := compact(t, in, c.own)
			var got []string
			var sum uint64
			for _, part := range short.InTheWay {
				at := ""
				if part.Seq > 0 {
					at = fmt.Sprint(" ", part.Seq)
				}
				got = append(got, fmt.Sprintf("%s%s: %d", part.What, at, part.Tokens))
				sum += part.Tokens
			}
			if sum != after.Tokens() || short.Over != after.Tokens()-c.ask.Goal {
				t.Errorf("%d tokens are listed of %d, and %d are said to be too many", sum, after.Tokens(), short.Over)
			}
			if s := strings.Join(got, ", "); s != c.want {
				t.Errorf("in the way are %s", s)
			}
		})
	}
}
