package reduce

import (
	"fmt"
	"math"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Prepared is an edit of a result that is written and measured. It belongs to the group
// that it was made for, whatever view that stands in, so whoever does the same again with
// every request makes it once.
type Prepared struct {
	// edits is the one edit, and what a group without others is shown with.
	edits []Edit
	// never is set where the group or the call lets nothing be done.
	never bool
}

// Redaction prepares that an audit pointer stands in the place of a result's body.
func (v View) Redaction(i int, call *Call, text, reducer, reason string) *Prepared {
	return v.prepare(i, call, Edit{Kind: Redacted, Text: text, Reducer: reducer, Reason: reason})
}

// Clipping prepares that a shorter text, its head and tail, stands in the place of a
// result's body.
func (v View) Clipping(i int, call *Call, text, reducer, reason string) *Prepared {
	return v.prepare(i, call, Edit{Kind: Clipped, Text: text, Reducer: reducer, Reason: reason})
}

func (v View) prepare(i int, call *Call, edit Edit) *Prepared {
	g := v.items[i].group
	if g.Pinned || call.Interrupted {
		return &Prepared{never: true}
	}
	r := g.Messages[call.Result].Blocks[0].Block.(eventlog.ToolResult)
	r.Content = []eventlog.Block{eventlog.Text{Text: edit.Text}}
	edit.Message, edit.Block, edit.Tokens = call.Result, 0, v.gauge.Block(r)
	return &Prepared{edits: []Edit{edit}}
}

// Put does what was prepared for group i.
func (e *Editor) Put(i int, p *Prepared) bool {
	it := &e.v.items[i]
	if p.never || it.dropped != nil {
		return false
	}
	edit := &p.edits[0]
	if len(it.edits) > 0 {
		return e.putAmong(it, *edit)
	}
	raw := it.group.Messages[edit.Message].Blocks[edit.Block].Tokens
	if edit.Tokens >= raw {
		return false
	}
	it.edits = p.edits
	it.tokens -= raw - edit.Tokens
	e.v.tokens -= raw - edit.Tokens
	e.touched++
	return true
}

// Frees is how many tokens Put would free in this view; 0 if it would do nothing.
func (v View) Frees(i int, p *Prepared) uint64 {
	it := &v.items[i]
	if p.never || it.dropped != nil {
		return 0
	}
	edit := &p.edits[0]
	now := it.group.Messages[edit.Message].Blocks[edit.Block].Tokens
	if old, ok := v.Edit(i, edit.Message, edit.Block); ok {
		now = old.Tokens
	}
	return now - min(now, edit.Tokens)
}

// Leaving writes and measures what stands in the place of group i when it leaves by
// itself: a line for each of its calls. With failed they say that all did, whatever the
// log marks. Like what is Prepared, it belongs to the group in any view.
func (v View) Leaving(i int, reducer, reason string, failed bool) *Dropped {
	g := v.items[i].group
	d := &Dropped{Reducer: reducer, Reason: reason}
	if len(g.Calls) > 0 {
		d.Text = fmt.Sprintf("[contextd: %d calls left: %s]\n%s", len(g.Calls), reason, ledgerOf(g, failed, v.gauge.Text))
		d.tokens = budget.MessageOverhead + v.gauge.Text(d.Text)
	}
	return d
}

// ledgerOf is a short line for each call of a group.
func ledgerOf(g *Group, failed bool, count func(string) uint64) string {
	calls := make([]ledger.Call, len(g.Calls))
	for i := range g.Calls {
		calls[i] = g.Calls[i].shortEntry()
		if failed {
			calls[i].Outcome = ledger.Failed
		}
	}
	return ledger.Write(calls, math.MaxUint64, count)
}

// Calls keeps the calls of groups in short, which takes longer than to list them. It has
// one owner. The zero value is empty and ready, and nil keeps nothing.
type Calls struct{ groups map[*Group][]ledger.Call }

func (c *Calls) of(g *Group) []ledger.Call {
	if c != nil {
		if calls, ok := c.groups[g]; ok {
			return calls
		}
	}
	calls := make([]ledger.Call, len(g.Calls))
	for i := range g.Calls {
		calls[i] = g.Calls[i].shortEntry()
	}
	if c != nil {
		if c.groups == nil {
			c.groups = map[*Group][]ledger.Call{}
		}
		c.groups[g] = calls
	}
	return calls
}

// prune forgets the other groups once they are the most.
func (c *Calls) prune(groups []*Group) {
	const slack = 64
	if c == nil || len(c.groups) <= 2*len(groups)+slack {
		return
	}
	kept := make(map[*Group][]ledger.Call, len(groups))
	for _, g := range groups {
		kept[g] = c.groups[g]
	}
	c.groups = kept
}

// Leave is Drop with what was made by Leaving for group i.
func (e *Editor) Leave(i int, d *Dropped) bool {
	it := &e.v.items[i]
	if e.v.Spared(i) || it.dropped != nil || d.tokens >= it.tokens {
		return false
	}
	e.v.tokens -= it.tokens - d.tokens
	it.tokens, it.edits, it.dropped = d.tokens, nil, d
	e.touched++
	return true
}
