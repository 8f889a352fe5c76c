package decide_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/decide"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
	"github.com/contextd/contextd/internal/summarize"
)

// events reads events in the notation of reducetest, a line each.
func events(t testing.TB, lines ...string) []eventlog.Event {
	t.Helper()
	all, err := reducetest.ParseEvents(strings.Join(lines, "\n"), 1)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// turns are so many turns of an agent that reads files.
func turns(n int) []string {
	all := []string{"system: You are an agent.", "user: Find the leak."}
	for i := range n {
		all = append(all,
			fmt.Sprintf(`assistant: I read on. | call c%d read {"path":"pkg/mod%d.go"}`, i, i),
			fmt.Sprintf("tool: c%d @80 mod%d", i, i))
	}
	return all
}

// inputs are those of a session that was never assembled, under the default policies.
func inputs(t testing.TB, target uint64, log []eventlog.Event) decide.Inputs {
	t.Helper()
	_, admitted, err := eventlog.Head{}.Admit(log)
	if err != nil {
		t.Fatal(err)
	}
	conv := reduce.NewConversation(reducetest.Gauge)
	for _, e := range admitted {
		conv.Append(e)
	}
	policy, err := projection.New(projection.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return decide.Inputs{
		Ctx: context.Background(), SessionID: "s", Conversation: conv, Policy: policy,
		Reduction: reducetest.Policy(), Budget: budget.Budget{Target: target},
		Summarizing: decide.SummaryPolicy{Summarizer: "model"},
	}
}

// run runs the inputs and puts the decisions into them, so that the next run starts from these.
func run(t testing.TB, in *decide.Inputs) decide.Projected {
	t.Helper()
	p, err := in.Run()
	if err != nil {
		t.Fatal(err)
	}
	in.Before, in.ShownBefore = p.Result.State, p.Applied.State
	return p
}

// written is a summary as long as a proposal allows.
func written(p *summarize.Proposal) *summarize.Summary {
	text := strings.Repeat("abc ", int(p.MaxOutputTokens))
	return &summarize.Summary{ID: p.SummaryID(), From: p.From, To: p.To, Text: text, Summarizer: p.Summarizer, Time: time.Unix(0, 0)}
}
