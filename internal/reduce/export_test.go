package reduce

import (
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// CutText shortens a text as clipping does.
func CutText(gauge budget.Accountant, text string, limit, head, tail uint64, pointer string) (string, bool) {
	short, ok := cutter{gauge, head, tail, gauge.Lines(text)}.cut(text, gauge.Text(text), limit, pointer)
	return short.Text, ok
}

// CutCounted is CutText where each attempt is counted.
func CutCounted(gauge budget.Accountant, text string, limit, head, tail uint64, pointer string) (string, bool) {
	short, ok := cutter{gauge, head, tail, nil}.cut(text, gauge.Text(text), limit, pointer)
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
func TextsRead(c *Conversation) int { return c.digests.memos[0].read + c.digests.memos[1].read }

// DigestRules is the version of the rules of a digest.
const DigestRules = digestRules
