package evaluate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/decide"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/extractive"
)

// Contextd is a policy of contextd, run as the daemon runs it, except that a proposed summary is always ready by the
// next request.
type Contextd struct {
	in decide.Inputs
	// backend writes the summaries; writer is its name in them.
	backend summarize.Backend
	writer  string
	// summaries are all that were made, oldest first.
	summaries []summarize.Summary
	compiled  projection.Policy
	// last is the prompt before, and lastAsOf the event that it was made at; 0 if there is none.
	last     Prompt
	lastAsOf eventlog.Seq
}

// NewContextd returns the policy under a budget, with the prices of a model and extractive summaries. Its
// computations end when ctx ends. The error is projection.New's.
func NewContextd(ctx context.Context, p assemble.Policy, b budget.Budget, model budget.Model) (*Contextd, error) {
	compiled, err := projection.New(p.Projection)
	if err != nil {
		return nil, err
	}
	return &Contextd{compiled: compiled, backend: extractive.Backend{}, writer: "extractive", in: decide.Inputs{
		Ctx: ctx, Reduction: p.ReductionFor(model), Budget: b, Projection: p.Projection, Summarizing: p.Summaries,
	}}, nil
}

// SummarizedBy sets the backend that writes summaries, and its name; a nil backend means no summaries.
func (c *Contextd) SummarizedBy(name string, by summarize.Backend) *Contextd {
	c.writer, c.backend = name, by
	return c
}

// Render implements Policy.
func (c *Contextd) Render(l *Log) Prompt {
	conv := l.Conversation
	c.in.Conversation, c.in.Summaries, c.in.Policy = conv, c.offered(), c.compiled
	if p, ok := c.compiled.(projection.Rooted); ok {
		c.in.Policy = p.WithRoots(c.in.Projection.WithLive(conv))
	}
	p, out, err := c.run(l)
	if over, ok := errors.AsType[*reduce.OverBudgetError](err); ok {
		return Prompt{Refused: irreducible(over)}
	}
	if err != nil {
		return Prompt{Refused: err.Error()}
	}
	c.in.Before, c.in.ShownBefore = p.Result.State, p.Applied.State
	c.last, c.lastAsOf = out, conv.Head()
	c.summarize(conv, p)
	return out
}

// run computes a prompt without bound reasoning that the provider would refuse after the prompt before.
func (c *Contextd) run(l *Log) (decide.Projected, Prompt, error) {
	for {
		p, err := c.in.Run()
		if err != nil {
			return p, Prompt{}, err
		}
		out := rendered(l, p)
		if !p.Conversation.Bound() || !c.in.Unbind(p, c.seen(out)) {
			return p, out, nil
		}
	}
}

// seen returns what the model saw of a prompt in the one before it.
func (c *Contextd) seen(now Prompt) reduce.Seen {
	stable, changed := now.compare(c.last)
	seen := reduce.Seen{AsOf: c.lastAsOf, Other: changed}
	for _, m := range now.Messages[stable:] {
		if seen.From = m.first; seen.From.Seq > 0 {
			break
		}
	}
	return seen
}

// offered returns the summary in use and the newest one.
func (c *Contextd) offered() []summarize.Summary {
	var out []summarize.Summary
	for i, s := range c.summaries {
		if s.ID == c.in.Before.Summary || i == len(c.summaries)-1 {
			out = append(out, s)
		}
	}
	return out
}

// summarize makes the summary that a daemon would make in the background.
func (c *Contextd) summarize(conv *reduce.Conversation, p decide.Projected) {
	next, _ := c.in.Ahead(p)
	if next == nil || c.backend == nil {
		return
	}
	var older summarize.Summary
	if at := slices.IndexFunc(c.summaries, func(s summarize.Summary) bool { return s.ID == next.Extends }); at >= 0 {
		older = c.summaries[at]
	}
	out, err := c.backend.Summarize(c.in.Ctx, summarize.Request{
		From: next.From, To: next.To, Older: older.Text, Groups: conv.Span(older.To, next.To),
		MaxOutputTokens: next.MaxOutputTokens, Count: conv.Gauge().Text,
	})
	if err != nil {
		return
	}
	c.summaries = append(c.summaries, summarize.Summary{ID: fmt.Sprintf("s%d", next.To), From: next.From, To: next.To, Summarizer: c.writer, Text: out.Text})
}

// rendered returns the prompt of a projection.
func rendered(l *Log, p decide.Projected) Prompt {
	v := p.Result.View
	out := builder{log: l}
	add := func(m render.Message) { out.add(m, m.Tokens) }
	digest, at := v.Digest()
	for i := range v.Len() {
		if i == at && digest.Through > 0 {
			add(render.DigestMessage(digest))
		}
		for _, m := range render.GroupMessages(v, i) {
			add(m)
		}
		out.Visible += len(v.Group(i).Calls)
	}
	if at == v.Len() && digest.Through > 0 {
		add(render.DigestMessage(digest))
	}
	for _, r := range p.Reminders {
		add(render.ReminderMessage(v, r))
	}
	out.Visible += digest.Calls
	out.Digest, out.Summary = digest.Tokens, digest.SummaryTokens
	out.Tokens = p.Tokens()
	return out.done()
}

// irreducible names the parts that together exceed the target.
func irreducible(e *reduce.OverBudgetError) string {
	var what []string
	var sum uint64
	for _, p := range e.Parts {
		what = append(what, p.What)
		if sum += p.Tokens; sum > e.Target {
			break
		}
	}
	return strings.Join(what, " + ")
}
