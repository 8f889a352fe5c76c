package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/extractive"
)

// rendered is one request's prompt.
type rendered struct {
	json   []byte // JSON lines
	text   string // what the model reads
	hash   string // of json, where a daemon made it
	tokens uint64
	// visible is how many of the log's calls are in full, stubbed or counted in a
	// ledger.
	visible int
	cause   string // of a changed prefix
	refused string // why there is no prompt
}

// policy builds prompts for the successive steps of one session.
type policy interface {
	render(conv *reduce.Conversation) rendered
}

// contextd is the policy under test, run as the daemon runs it: with extractive
// summaries that are ready between two requests.
type contextd struct {
	policy reduce.Policy
	budget budget.Budget
	state  reduce.State
	// summaries are all that were made, oldest first.
	summaries []reduce.Summary
}

// offered are the summary in use and the newest one.
func (c *contextd) offered() []reduce.Summary {
	var out []reduce.Summary
	for i, s := range c.summaries {
		if s.ID == c.state.Summary || i == len(c.summaries)-1 {
			out = append(out, s)
		}
	}
	return out
}

// summarize makes the summary that a daemon would make in the background.
func (c *contextd) summarize(conv *reduce.Conversation) {
	pipeline := reduce.NewPipeline(c.policy, conv, c.offered()...)
	now, err := pipeline.Current(c.budget, c.state, reduce.Ask{})
	if err != nil {
		return
	}
	span, ok := pipeline.Propose(c.budget, now, reduce.Ask{})
	if !ok {
		return
	}
	var older reduce.Summary
	for _, s := range c.summaries {
		if s.ID == span.Extends {
			older = s
		}
	}
	tokens := pipeline.SummaryTokens(c.budget)
	out, err := extractive.Backend{}.Summarize(context.Background(), summarize.Request{
		From: span.From, To: span.To, Older: older.Text, Groups: conv.Span(older.Through, span.To),
		MaxOutputTokens: tokens - tokens/6, Count: conv.Gauge().Text,
	})
	if err != nil {
		return
	}
	c.summaries = append(c.summaries, reduce.Summary{ID: fmt.Sprintf("s%d", span.To), Through: span.To, By: "extractive", Text: out.Text})
}

func (c *contextd) render(conv *reduce.Conversation) rendered {
	r, err := reduce.NewPipeline(c.policy, conv, c.offered()...).Run(c.budget, c.state, reduce.Ask{})
	var over *reduce.OverBudgetError
	if errors.As(err, &over) {
		return rendered{refused: irreducible(over)}
	}
	c.state = r.State
	c.summarize(conv)
	var out builder
	digest, at := r.View.Digest()
	for i := range r.View.Len() {
		if i == at && digest.Through > 0 {
			out.add(render.DigestMessage(digest))
		}
		for _, m := range render.GroupMessages(r.View, i) {
			out.add(m)
		}
		out.visible += len(r.View.Group(i).Calls)
	}
	if at == r.View.Len() && digest.Through > 0 {
		out.add(render.DigestMessage(digest))
	}
	out.visible += digest.Calls
	out.tokens = r.View.Tokens()
	return out.done()
}

// irreducible names what was too large.
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

// builder gathers messages.
type builder struct {
	rendered
	plain []byte
}

func (b *builder) add(m render.Message) {
	b.json = append(render.AppendJSON(b.json, m), '\n')
	for _, block := range m.Blocks {
		b.plain = append(append(b.plain, plain(block)...), 0)
	}
}

func (b *builder) done() rendered {
	b.text = string(b.plain)
	return b.rendered
}

// results is a simple policy: it chooses which results stay, and drops nothing
// else.
type results struct {
	keep  int // the newest results that stay
	batch int // how many more may gather before the older go
	gone  int
}

func (p *results) render(conv *reduce.Conversation) rendered {
	total := 0
	for _, g := range conv.Groups() {
		total += len(g.Calls)
	}
	if p.keep > 0 && total-p.gone >= p.keep+p.batch {
		p.gone = total - p.keep
	}
	var out builder
	n := 0
	for _, g := range conv.Groups() {
		byMessage := map[int]bool{}
		for _, c := range g.Calls {
			byMessage[c.Result] = p.keep > 0 && n < p.gone
			n++
			out.visible++
		}
		for i := range g.Messages {
			m := fullMessage(&g.Messages[i])
			if byMessage[i] {
				r := m.Blocks[0].(eventlog.ToolResult)
				r.Content = []eventlog.Block{eventlog.Text{Text: "[old result removed]"}}
				m.Blocks = []eventlog.Block{r}
			}
			out.add(m)
			for _, b := range m.Blocks {
				out.tokens += conv.Gauge().Block(b)
			}
			out.tokens += budget.MessageOverhead
		}
	}
	return out.done()
}

// sliding keeps the system prompt and as many of the newest groups as the budget
// holds.
type sliding struct{ target uint64 }

func (p sliding) render(conv *reduce.Conversation) rendered {
	groups := conv.Groups()
	var used uint64
	for _, g := range groups {
		if g.Kind == reduce.KindSystem {
			used += g.Tokens
		}
	}
	from := len(groups)
	for from > 0 && (from == len(groups) || used+groups[from-1].Tokens <= p.target) {
		from--
		if groups[from].Kind != reduce.KindSystem {
			used += groups[from].Tokens
		}
	}
	var out builder
	for i, g := range groups {
		if i < from && g.Kind != reduce.KindSystem {
			continue
		}
		out.visible += len(g.Calls)
		for m := range g.Messages {
			out.add(fullMessage(&g.Messages[m]))
		}
	}
	out.tokens = used
	return out.done()
}

func fullMessage(m *reduce.Message) render.Message {
	r := render.Message{Role: m.Role, Seqs: m.Seqs}
	for _, b := range m.Blocks {
		r.Blocks = append(r.Blocks, b.Block)
	}
	return r
}
