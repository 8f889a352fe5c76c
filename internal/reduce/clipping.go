package reduce

import (
	"fmt"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// clipping keeps head and tail of results that are too large by themselves, and
// of a first user message that would crowd out everything else. A result is
// clipped when it first appears, so that clipping rewrites nothing; tighter
// limits come from the state.
type clipping struct {
	policy Clipping
	texts  writer
}

func (clipping) Name() string { return "clipping" }

func (c clipping) Reduce(v View, s State) (View, Step) {
	e := v.Editor()
	least := s.leastClip()
	texts := limitsOf(s.TextClips)
	for i := range v.Len() {
		if v.Ended() != nil {
			break
		}
		g := v.Group(i)
		switch {
		case g.isSystemPrompt() && s.SystemTextTokens > 0:
			c.clipTexts(e, i, func(eventlog.Seq) uint64 { return s.SystemTextTokens }, "the system prompt leaves no room, or is over its cap")
		case g.Anchor && g.Kind == KindUser && s.AnchorTokens > 0 && g.Tokens > s.AnchorTokens:
			level := max(clipLevel([]*Group{g}, s.AnchorTokens), clipFloor)
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

// clipTexts shortens the texts of group i to the limits of their events; 0 is none.
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
	// clipFloor is the smallest limit at which head and tail say something, in
	// tokens.
	clipFloor = 64
	// pointerAlone is the limit at which nothing but the pointer stays.
	pointerAlone = 1
)

// Free implements Freer. It halves the limit of the results that are still in the view in
// full until enough is freed, down to their pointers alone. It serves as a last resort: by
// then only the newest turns remain.
func (c clipping) Free(v View, s State, d Demand) State {
	e := v.Editor()
	before := e.Tokens()
	var from, through eventlog.Seq
	largest := uint64(0)
	for i := range e.v.Len() {
		g := e.v.Group(i)
		for k := range g.Calls {
			call := &g.Calls[k]
			if edit, ok := e.v.Edit(i, call.Result, 0); call.Interrupted || ok && edit.Kind == Stubbed || v.protects(call) {
				continue
			}
			if through == 0 {
				from = call.Seq - 1
			}
			from, through = min(from, call.Seq-1), max(through, call.Seq)
			largest = max(largest, g.Messages[call.Result].Tokens)
		}
	}
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
		for i := range e.v.Len() {
			if e.v.Ended() != nil {
				return s
			}
			g := e.v.Group(i)
			for k := range g.Calls {
				if seq := g.Calls[k].Seq; seq > from && seq <= through {
					c.clipResult(e, i, &g.Calls[k], limit)
				}
			}
		}
	}
	if limit < largest {
		s.Clips = append(s.Clips[:len(s.Clips):len(s.Clips)], Clip{from, through, limit})
	}
	return s
}

// clipsOf limits the texts of one group. An event may hold another group's text beside a result
// of this one.
func clipsOf(g *Group, limit uint64) []Clip {
	var clips []Clip
	for b := range g.texts() {
		if last := len(clips) - 1; last >= 0 && b.Seq-clips[last].Through <= 1 {
			clips[last].Through = b.Seq
		} else {
			clips = append(clips, Clip{b.Seq - 1, b.Seq, limit})
		}
	}
	return clips
}

// clipLevel is the size at which texts must be cut for the groups to take limit.
func clipLevel(groups []*Group, limit uint64) uint64 {
	var texts []uint64
	var rest uint64
	for _, g := range groups {
		rest += g.Tokens
		for _, tokens := range g.textTokens() {
			texts = append(texts, tokens)
			rest -= tokens
		}
	}
	room := limit - min(rest, limit)
	slices.Sort(texts)
	for i, tokens := range texts {
		level := room / uint64(len(texts)-i)
		if tokens > level {
			return level
		}
		room -= tokens
	}
	return limit
}

// names is what names may take of a clip of so many tokens.
func (c Clipping) names(limit uint64) uint64 {
	const part = 8
	if c.HeadTokens+c.TailTokens > 0 {
		return 0
	}
	return min(c.NameTokens, limit/part)
}
