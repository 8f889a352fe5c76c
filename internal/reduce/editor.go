package reduce

import (
	"fmt"
	"math"
	"slices"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Editor makes a changed copy of a view. A verb that would break a rule does nothing and returns false: no verb
// changes a pinned group or evicts a protected result, and none makes anything larger. An Editor must not be used
// after View.
type Editor struct {
	v       View
	copied  bool // whether v.items is the editor's own copy, which the first change makes
	touched int
	// own is the index of the item whose edits were copied last, or -1. These may be changed in place, so that
	// several edits of one group in a row need one copy.
	own int
}

// Editor returns an editor on a copy of the view.
func (v View) Editor() *Editor { return &Editor{v: v, own: -1} }

// change replaces item i.
func (e *Editor) change(i int, to item) {
	if !e.copied {
		e.v.items, e.copied = slices.Clone(e.v.items), true
	}
	e.v.tokens -= e.v.items[i].tokens - to.tokens
	e.v.items[i] = to
	e.touched++
}

// View returns the changed view.
func (e *Editor) View() View { return e.v }

// Touched counts the verbs that took effect.
func (e *Editor) Touched() int { return e.touched }

// Tokens returns the size of the view with the changes so far.
func (e *Editor) Tokens() uint64 { return e.v.tokens }

// Replace replaces the body of a call's result by text. Unless that is the body's head and tail, it should name the
// result's pointer.
func (e *Editor) Replace(i int, call *Call, kind EditKind, text, reducer, reason string) bool {
	return e.replace(i, call, kind, e.v.gauge.Piece(text), reducer, reason)
}

// replace is Replace with a text whose tokens are already counted.
func (e *Editor) replace(i int, call *Call, kind EditKind, text budget.Piece, reducer, reason string) bool {
	return e.Put(i, e.v.prepare(i, call, kind, text, reducer, e.v.protection.reason(call, reason)))
}

// decided stubs a result because a caller's compaction decided so, even if it is protected.
func (e *Editor) decided(i int, call *Call, text budget.Piece, reducer, reason string) bool {
	return e.replaceWith(i, e.v.prepare(i, call, Stubbed, text, reducer, reason))
}

// Drop drops group i alone. Its calls stay visible: a line for each takes its place. It does nothing to a
// group that is spared, protected, or smaller than these lines.
func (e *Editor) Drop(i int, reducer, reason string) bool {
	return e.PutDropped(i, e.v.PrepareDrop(i, reducer, reason, false))
}

// ClipAnchor replaces a text block of the anchor by its head and tail. The only other change of the anchor is that
// media in it are described.
func (e *Editor) ClipAnchor(i, message, block int, text, reducer, reason string) bool {
	return e.clipAnchor(i, message, block, e.v.gauge.Piece(text), reducer, reason)
}

func (e *Editor) clipAnchor(i, message, block int, text budget.Piece, reducer, reason string) bool {
	return e.v.items[i].group.Anchor && e.putText(i, message, block, text, reducer, reason)
}

// ClipText replaces a text block outside the anchor by its head and tail. Groups with sealed reasoning stay
// as they are.
func (e *Editor) ClipText(i, message, block int, text, reducer, reason string) bool {
	return e.clipText(i, message, block, e.v.gauge.Piece(text), reducer, reason)
}

func (e *Editor) clipText(i, message, block int, text budget.Piece, reducer, reason string) bool {
	g := e.v.items[i].group
	return !g.Anchor && !g.Sealed && e.putText(i, message, block, text, reducer, reason)
}

func (e *Editor) putText(i, message, block int, text budget.Piece, reducer, reason string) bool {
	g := e.v.items[i].group
	if g.Pinned {
		return false
	}
	if _, ok := g.Messages[message].Blocks[block].Block.(eventlog.Text); !ok {
		return false
	}
	return e.put(i, Edit{Kind: Clipped, Message: message, Block: block, Text: text.Text, Tokens: e.v.gauge.Tokens(text.Cost), Reducer: reducer, Reason: reason})
}

// describe replaces media, or a provider block, in a message of a user or the system by a text that says what was
// there.
func (e *Editor) describe(i, message, block int, text budget.Piece, reducer, reason string) bool {
	if g := e.v.items[i].group; g.Pinned || g.Messages[message].answers() {
		return false
	}
	return e.put(i, Edit{Kind: Stubbed, Message: message, Block: block, Text: text.Text, Tokens: e.v.gauge.Tokens(text.Cost), Reducer: reducer, Reason: reason})
}

// OmitThinking omits all thinking blocks of group i, except in messages that have nothing else: these would be empty.
func (e *Editor) OmitThinking(i int, reducer, reason string) bool {
	it := &e.v.items[i]
	if it.group.Pinned {
		return false
	}
	done := false
	for m := range it.group.Messages {
		blocks := it.group.Messages[m].Blocks
		if !it.group.Messages[m].thinks || !slices.ContainsFunc(blocks, func(b Block) bool { return !isThinking(b) }) {
			continue
		}
		for b := range blocks {
			if isThinking(blocks[b]) {
				done = e.put(i, Edit{Kind: Omitted, Message: m, Block: b, Reducer: reducer, Reason: reason}) || done
			}
		}
	}
	return done
}

func isThinking(b Block) bool {
	_, ok := b.Block.(eventlog.Thinking)
	return ok
}

// put records an edit if it shrinks the block, or omits it.
func (e *Editor) put(i int, edit Edit) bool {
	it := e.v.items[i]
	if it.dropped != nil {
		return false
	}
	now := it.group.Messages[edit.Message].Blocks[edit.Block].Tokens
	gone := false
	at, again := findEdit(it.edits, edit.Message, edit.Block)
	if again {
		now, gone = it.edits[at].Tokens, it.edits[at].Kind == Omitted
	}
	if edit.Tokens >= now && (edit.Kind != Omitted || gone) {
		return false
	}
	if e.own != i {
		it.edits, e.own = slices.Clone(it.edits), i
	}
	if again {
		it.edits[at] = edit
	} else {
		it.edits = slices.Insert(it.edits, at, edit)
	}
	it.tokens -= now - edit.Tokens
	e.change(i, it)
	return true
}

// Collapse replaces the groups up to and including event through by text, except those that are spared, protected or
// in keep. A further call extends the run. It does nothing, and returns false, if no group would be dropped or text
// is not smaller than the dropped groups in full.
func (e *Editor) Collapse(through eventlog.Seq, keep map[*Group]bool, text string) bool {
	digest := e.v.digest
	digest.Through, digest.Text = through, text
	digest.Tokens = budget.MessageOverhead + e.v.gauge.Text(text)
	kept := make([]item, 0, len(e.v.items))
	tokens := digest.Tokens
	for i, it := range e.v.items {
		if it.group.First > through || e.v.Spared(i) || e.v.Protected(i) || keep[it.group] {
			kept = append(kept, it)
			tokens += it.tokens
			continue
		}
		digest.add(it.group)
	}
	left := len(e.v.items) - len(kept)
	if left == 0 || digest.Tokens >= digest.RawTokens {
		return false
	}
	e.touched += left
	e.v.items, e.copied, e.own, e.v.digest, e.v.tokens = kept, true, -1, digest, tokens
	e.v.digestAt = e.v.anchorEnd(through)
	return true
}

// Prepared is an edit of a result with its text written and counted. It is valid for its group in any view, so that a
// caller that makes the same edit with every request prepares it once.
type Prepared struct {
	// edits has the one edit, of call's result. It is a slice, so that an item without other edits can share it.
	edits []Edit
	call  *Call
	// never is set if the edit is not allowed, because the group is pinned or the call has no result.
	never bool
}

// Prepare measures an edit that replaces the body of a call's result by a text.
func (v View) Prepare(i int, call *Call, kind EditKind, text, reducer, reason string) *Prepared {
	return v.prepare(i, call, kind, v.gauge.Piece(text), reducer, reason)
}

func (v View) prepare(i int, call *Call, kind EditKind, text budget.Piece, reducer, reason string) *Prepared {
	if v.items[i].group.Pinned || call.Interrupted {
		return &Prepared{never: true}
	}
	tokens := v.gauge.Block(eventlog.ToolResult{}) + v.gauge.Tokens(text.Cost)
	return &Prepared{call: call, edits: []Edit{{Kind: kind, Message: call.Result, Text: text.Text, Tokens: tokens, Reducer: reducer, Reason: reason}}}
}

// Put makes the edit that was prepared for group i.
func (e *Editor) Put(i int, p *Prepared) bool {
	return !e.v.protectsAt(p) && e.replaceWith(i, p)
}

func (e *Editor) replaceWith(i int, p *Prepared) bool {
	it := e.v.items[i]
	if p.never || it.dropped != nil {
		return false
	}
	edit := &p.edits[0]
	if len(it.edits) > 0 {
		return e.put(i, *edit)
	}
	raw := it.group.Messages[edit.Message].Blocks[edit.Block].Tokens
	if edit.Tokens >= raw {
		return false
	}
	it.edits = p.edits
	it.tokens -= raw - edit.Tokens
	e.change(i, it)
	return true
}

// Frees returns how many tokens Put would free in this view; 0 if it would do nothing.
func (v View) Frees(i int, p *Prepared) uint64 {
	it := &v.items[i]
	if p.never || it.dropped != nil || v.protectsAt(p) {
		return 0
	}
	edit := &p.edits[0]
	now := it.group.Messages[edit.Message].Blocks[edit.Block].Tokens
	if old, ok := v.Edit(i, edit.Message, edit.Block); ok {
		now = old.Tokens
	}
	return now - min(now, edit.Tokens)
}

// PrepareDrop writes and counts what replaces group i when it is dropped alone: a line for each of its calls. With
// failed, each line says that the call failed, whatever the log says. Like a Prepared, it is valid for the group in
// any view.
func (v View) PrepareDrop(i int, reducer, reason string, failed bool) *Dropped {
	g := v.items[i].group
	d := &Dropped{Reducer: reducer, Reason: reason}
	if len(g.Calls) > 0 {
		calls := "1 call"
		if n := len(g.Calls); n > 1 {
			calls = fmt.Sprintf("%d calls", n)
		}
		d.Text = fmt.Sprintf("[contextd: %s removed: %s]\n%s", calls, reason, ledgerOf(g, failed, v.gauge))
		d.tokens = budget.MessageOverhead + v.gauge.Text(d.Text)
	}
	return d
}

// ledgerOf returns a short line for each call of a group.
func ledgerOf(g *Group, failed bool, gauge budget.Gauge) string {
	calls := g.shortEntries()
	for i := range calls {
		if failed {
			calls[i].Outcome = ledger.Failed
		}
	}
	return budget.Join(ledger.Write(calls, math.MaxUint64, gauge))
}

// PutDropped is Drop with the replacement that PrepareDrop made for group i.
func (e *Editor) PutDropped(i int, d *Dropped) bool {
	it := e.v.items[i]
	if e.v.Spared(i) || e.v.Protected(i) || e.v.Live(i) || it.dropped != nil || d.tokens >= it.tokens {
		return false
	}
	it.tokens, it.edits, it.dropped = d.tokens, nil, d
	e.change(i, it)
	return true
}
