package reduce

import (
	"fmt"
	"reflect"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// CutText shortens a text as clipping does.
func CutText(gauge budget.Gauge, text string, limit uint64, c Clipping, pointer string) (string, bool) {
	short, ok := cutter{gauge, c.HeadTokens, c.TailTokens, c.names(limit), gauge.Lines(text)}.cut(text, gauge.Text(text), limit, pointer)
	return short.Text, ok
}

// CutCounted is CutText where each attempt is counted.
func CutCounted(gauge budget.Gauge, text string, limit uint64, c Clipping, pointer string) (string, bool) {
	short, ok := cutter{gauge, c.HeadTokens, c.TailTokens, c.names(limit), nil}.cut(text, gauge.Text(text), limit, pointer)
	return short.Text, ok
}

// TextsKept is how many texts a conversation keeps that are in a block's place.
func TextsKept(c *Conversation) int { return len(c.texts.stubs.made) + len(c.texts.clips.made) }

// RewrittenTokens is what a provider reads again if after takes the place of before.
func RewrittenTokens(before, after View) uint64 { return rewrittenTokens(before, after) }

// ClipFor is the limit that a state sets on a result.
func (s State) ClipFor(seq eventlog.Seq) uint64 { return s.clipFor(seq) }

// Rule is the retention of a tool.
func (t ToolResults) Rule(tool string) Retention {
	return newRules(t).rule(tool, func() error { return nil }).Retention
}

// InForce are the compactions that were not taken back.
func (c *Conversation) InForce() []eventlog.Seq { return c.compactions.InForce() }

// ToolsDecided is of how many tools the retention was looked for in the policy.
func (c *Conversation) ToolsDecided() int { return len(c.rules.decided) }

// TextsRead is of how many groups the texts were read for a digest.
func TextsRead(c *Conversation) int { return c.digestMemos.memos[0].read + c.digestMemos.memos[1].read }

// DigestRules is the version of the rules of a digest.
const DigestRules = digestRules

// Agrees holds what is kept of a conversation between reductions to the reducers, which look at every
// group: what a state shows, and what the rules by age would do to it.
func (p *Pipeline) Agrees(b budget.Budget, s State, ask Ask) error {
	r, now, err := p.start(b, s, ask)
	if err != nil {
		return err
	}
	if !p.incremental(now.State) {
		return nil
	}
	all := p.reduce(now.State)
	if !reflect.DeepEqual(all.Steps, now.Steps) || all.View.tokens != now.View.tokens || all.View.human != now.View.human || all.View.opens != now.View.opens ||
		all.View.digest != now.View.digest || all.View.digestAt != now.View.digestAt || !reflect.DeepEqual(all.View.items, now.View.items) {
		return fmt.Errorf("what is kept shows %+v, %d tokens; the reducers show %+v, %d", now.Steps, now.View.tokens, all.Steps, all.View.tokens)
	}
	freed, rewritten, ok := r.agedTokens(now)
	if !ok || now.State.EvictedAsOf >= p.conv.head {
		return nil
	}
	after := p.reduce(r.evict(now.State)).View
	if want := now.View.tokens - min(now.View.tokens, after.tokens); freed != want || rewritten != rewrittenTokens(now.View, after) {
		return fmt.Errorf("a batch is to free %d tokens and rewrite %d; it frees %d and rewrites %d", freed, rewritten, want, rewrittenTokens(now.View, after))
	}
	return nil
}

// StubText is what replaces a result, with an outline.
func StubText(gauge budget.Gauge, call *Call) string {
	return writer{newTexts(gauge), ""}.stub(call, 100).Text
}
