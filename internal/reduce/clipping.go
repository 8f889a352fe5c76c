package reduce

import (
	"cmp"
	"fmt"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// clipping cuts the middle out of results that are too large by themselves, and out of a first user message that
// leaves too little room for the rest. A result is clipped when it first appears, so that the cached prefix does not
// change; the state may have tighter limits.
type clipping struct {
	policy Clipping
	texts  writer
}

func (clipping) Name() string { return "clipping" }

func (c clipping) Reduce(v View, s State) (View, Step) {
	e := v.Editor()
	least := s.leastClip()
	texts, media := limitsOf(s.TextClips), limitsOf(s.MediaClips)
	for i := range v.Len() {
		if v.Ended() != nil {
			break
		}
		g := v.Group(i)
		switch {
		case g.isSystemPrompt() && s.SystemTextTokens > 0:
			c.clipTexts(e, i, func(eventlog.Seq) uint64 { return s.SystemTextTokens }, "the system prompt leaves no room, or is over its cap")
		case g.Anchor && g.Kind == KindUser && s.AnchorTokens > 0 && g.Tokens > s.AnchorTokens:
			level := max(clipLevel([]*Group{g}, media, s.AnchorTokens), clipFloor)
			c.clipTexts(e, i, func(eventlog.Seq) uint64 { return level }, "the first user message alone takes more than half of the target")
		}
		if g.Tokens > least {
			for k := range g.Calls {
				c.clipResult(e, i, &g.Calls[k], s.clipFor(g.Calls[k].Seq))
			}
		}
		if !g.Anchor && len(s.TextClips) > 0 {
			c.clipTexts(e, i, texts.at, textReason(g))
		}
		if len(s.MediaClips) > 0 {
			c.describeMedia(e, i, media)
		}
	}
	return e.View(), Step{Touched: e.Touched(), Note: c.note(e.Touched(), s)}
}

func (clipping) note(touched int, s State) string {
	if s.ClipTokens == 0 {
		return fmt.Sprintf("clipped %d texts; no result for its size alone", touched)
	}
	return fmt.Sprintf("clipped %d texts; results over %d tokens keep head and tail", touched, s.ClipTokens)
}

func (c clipping) clipResult(e *Editor, i int, call *Call, limit uint64) {
	tokens := e.v.Group(i).Messages[call.Result].Tokens
	if limit == 0 || tokens <= limit || call.Interrupted {
		return
	}
	if edit, ok := e.v.Edit(i, call.Result, 0); ok && edit.Kind == Stubbed {
		return
	}
	if text, ok := c.texts.clip(call, tokens, limit, c.policy); ok {
		e.replace(i, call, Clipped, text, c.Name(), fmt.Sprintf("larger than %d tokens", limit))
	} else if limit == pointerAlone {
		e.replace(i, call, Stubbed, c.texts.stub(call, 0), c.Name(), "the newest results alone are too large")
	}
}

// clipTexts shortens the texts of group i to limit(event) tokens; 0 is no limit.
func (c clipping) clipTexts(e *Editor, i int, limit func(eventlog.Seq) uint64, reason string) {
	g := e.v.Group(i)
	clip := e.clipText
	if g.Anchor {
		clip = e.clipAnchor
	}
	for m := range g.Messages {
		for b, block := range g.Messages[m].Blocks {
			text, ok := block.Block.(eventlog.Text)
			if limit := limit(block.Seq); ok && limit > 0 {
				if short, ok := c.texts.clipText(block, text.Text, limit); ok {
					clip(i, m, b, short, c.Name(), reason)
				}
			}
		}
	}
}

// describeMedia replaces the media and provider blocks of group i that are larger than their limits by texts.
func (c clipping) describeMedia(e *Editor, i int, limits clipLimits) {
	for m, b := range e.v.Group(i).media(limits) {
		e.describe(i, m, b, c.texts.described(e.v.Group(i).Messages[m].Blocks[b]), c.Name(), "media leave no room")
	}
}

// textReason says why a text of the group is clipped.
func textReason(g *Group) string {
	switch {
	case g.Human > 0:
		return "the newest human message leaves no room"
	case g.Kind == KindUser || g.Standing != "":
		return "what the runtime put in leaves too little room"
	default:
		return "the newest messages alone are too large"
	}
}

const (
	// clipFloor is the smallest limit, in tokens, at which head and tail are worth showing.
	clipFloor = 64
	// pointerAlone is a limit at which only the pointer is shown.
	pointerAlone = 1
)

// Free implements freer. It halves the limit on the results that are not stubbed until enough is freed,
// down to their pointers alone. Only the last resort uses it: by then only the newest turns remain.
func (c clipping) Free(v View, s State, d demand) State {
	e := v.Editor()
	before := e.Tokens()
	from, through, largest := v.clippable()
	if through == 0 {
		return s
	}
	limit := largest
	if s.ClipTokens > 0 {
		limit = min(limit, s.ClipTokens)
	}
	for limit > pointerAlone && before-e.Tokens() < d.Tokens {
		if limit /= 2; limit < clipFloor {
			limit = pointerAlone
		}
		if !c.clipBetween(e, from, through, limit) {
			return s
		}
	}
	if limit < largest {
		s.Clips = append(s.Clips[:len(s.Clips):len(s.Clips)], Clip{from, through, limit})
	}
	return s
}

// clippable returns the events (from, through] that include all results in a view that clipping may shorten, and the
// size of the largest; through is 0 if there is none.
func (v View) clippable() (from, through eventlog.Seq, largest uint64) {
	for i := range v.Len() {
		g := v.Group(i)
		for k := range g.Calls {
			call := &g.Calls[k]
			if edit, ok := v.Edit(i, call.Result, 0); call.Interrupted || ok && edit.Kind == Stubbed || v.protects(call) {
				continue
			}
			if through == 0 {
				from = call.Seq - 1
			}
			from, through = min(from, call.Seq-1), max(through, call.Seq)
			largest = max(largest, g.Messages[call.Result].Tokens)
		}
	}
	return from, through, largest
}

// clipBetween clips the results in events (from, through]; false if the reduction should stop.
func (c clipping) clipBetween(e *Editor, from, through eventlog.Seq, limit uint64) bool {
	for i := range e.v.Len() {
		if e.v.Ended() != nil {
			return false
		}
		g := e.v.Group(i)
		for k := range g.Calls {
			if seq := g.Calls[k].Seq; seq > from && seq <= through {
				c.clipResult(e, i, &g.Calls[k], limit)
			}
		}
	}
	return true
}

// names returns how many tokens of a clip may be names from the part that was cut out.
func (c Clipping) names(limit uint64) uint64 {
	const part = 8
	if c.HeadTokens+c.TailTokens > 0 {
		return 0
	}
	return min(c.NameTokens, limit/part)
}

// Under a small target a result may take leastClip tokens, but no more than leastPart times its share.
const (
	leastClip = 1_600
	leastPart = 2.5
)

// Limit returns the size above which a result is clipped when it first appears; 0 is none.
func (c Clipping) Limit(b budget.Budget) uint64 {
	const eighth = 0.125
	share := b.Share(cmp.Or(c.Share, eighth))
	if c.Share > 0 {
		share = max(share, min(leastClip, b.Share(leastPart*c.Share)))
	}
	switch {
	case c.Exact:
		return c.MaxTokens
	case c.MaxTokens > 0:
		return min(c.MaxTokens, share)
	default:
		return share
	}
}
