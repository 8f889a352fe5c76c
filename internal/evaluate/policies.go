package evaluate

import (
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// Policy makes the prompts of one session, step by step. It is not safe for concurrent use.
type Policy interface {
	// Render makes the prompt of the next step from the log before it.
	Render(l *Log) Prompt
}

// Results is a simple policy that removes old tool results and nothing else. The zero value keeps
// everything.
type Results struct {
	Keep  int // how many of the newest results stay; 0 for all
	Batch int // how many more there may be before old ones are removed
	gone  int
}

// Render implements Policy.
func (p *Results) Render(l *Log) Prompt {
	total := 0
	for _, g := range l.Groups() {
		total += len(g.Calls)
	}
	if p.Keep > 0 && total-p.gone >= p.Keep+p.Batch {
		p.gone = total - p.Keep
	}
	out := builder{log: l}
	n := 0
	for _, g := range l.Groups() {
		byMessage := map[int]bool{}
		for _, c := range g.Calls {
			byMessage[c.Result] = p.Keep > 0 && n < p.gone
			n++
			out.Visible++
		}
		for i := range g.Messages {
			if !byMessage[i] {
				out.addFull(&g.Messages[i])
				out.Tokens += g.Messages[i].Tokens
				continue
			}
			m := fullMessage(&g.Messages[i])
			r := m.Blocks[0].(eventlog.ToolResult)
			r.Content = []eventlog.Block{eventlog.Text{Text: "[old result removed]"}}
			m.Blocks, m.Cause = []eventlog.Block{r}, "results"
			tokens := budget.MessageOverhead + l.Gauge().Block(r)
			out.add(m, tokens)
			out.Tokens += tokens
		}
	}
	return out.done()
}

// Sliding keeps the system prompt and as many of the newest groups as Target tokens hold.
type Sliding struct{ Target uint64 }

// Render implements Policy.
func (p Sliding) Render(l *Log) Prompt {
	groups := l.Groups()
	var used uint64
	for _, g := range groups {
		if g.Kind == reduce.KindSystem {
			used += g.Tokens
		}
	}
	from := len(groups)
	for from > 0 && (from == len(groups) || used+groups[from-1].Tokens <= p.Target) {
		from--
		if groups[from].Kind != reduce.KindSystem {
			used += groups[from].Tokens
		}
	}
	out := builder{log: l}
	for i, g := range groups {
		if i < from && g.Kind != reduce.KindSystem {
			continue
		}
		out.Visible += len(g.Calls)
		for m := range g.Messages {
			out.addFull(&g.Messages[m])
		}
	}
	out.Tokens = used
	return out.done()
}
