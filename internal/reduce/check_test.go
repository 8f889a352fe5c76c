package reduce_test

import (
	"maps"
	"reflect"
	"regexp"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// fataler is *testing.T, *rapid.T and what a script fails by.
type fataler interface {
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// checkGroups holds the groups of a conversation against the log: every block
// is in exactly one of them as it was said, and results after their calls.
func checkGroups(t fataler, r *record, conv *reduce.Conversation) {
	seen := map[place]bool{}
	var tokens uint64
	chars := 0
	var last eventlog.Seq
	for _, g := range conv.Groups() {
		if g.First <= last {
			t.Fatalf("group at %d comes after the one at %d", g.First, last)
		}
		last = g.First
		checkPairs(t, r, g)
		var sum uint64
		pinned := false
		for _, m := range g.Messages {
			n := uint64(budget.MessageOverhead)
			for _, b := range m.Blocks {
				n += gauge.Block(b.Block)
				if b.Seq == 0 {
					continue
				}
				p := place{b.Seq, b.Index}
				if seen[p] || !sameBlock(r.block(p), b.Block) {
					t.Fatalf("block %v of the log is rendered twice or changed: %#v", p, b.Block)
				}
				seen[p] = true
				chars += reduce.Chars(b.Block)
				pinned = pinned || r.pinned[b.Seq]
			}
			if n != m.Tokens {
				t.Fatalf("message of events %v says %d tokens and has %d", m.Seqs, m.Tokens, n)
			}
			sum += n
		}
		if sum != g.Tokens || pinned != g.Pinned {
			t.Fatalf("group at %d says %d tokens, pinned %v; it has %d, %v", g.First, g.Tokens, g.Pinned, sum, pinned)
		}
		tokens += sum
	}
	if all := r.blocks(); len(all) != len(seen) {
		t.Fatalf("the log holds %d blocks, the groups %d", len(all), len(seen))
	}
	for _, g := range conv.Groups() {
		for _, c := range g.Calls {
			if c.Interrupted {
				chars += len(reduce.InterruptedText)
			}
		}
	}
	if tokens != conv.Tokens() || chars != conv.Chars() || conv.Turns() != r.head.Turns || conv.Head() != r.head.Seq {
		t.Fatalf("the conversation says %d tokens, %d characters, turn %d, head %d; it has %d, %d, %d, %d",
			conv.Tokens(), conv.Chars(), conv.Turns(), conv.Head(), tokens, chars, r.head.Turns, r.head.Seq)
	}
}

// sameBlock compares a block of the log with the one rendered; a result may have
// got its tool's name from the call.
func sameBlock(logged, rendered eventlog.Block) bool {
	if l, ok := logged.(eventlog.ToolResult); ok && l.ToolName == "" {
		r, _ := rendered.(eventlog.ToolResult)
		l.ToolName = r.ToolName
		logged = l
	}
	return reflect.DeepEqual(logged, rendered)
}

// checkPairs checks that each call of the group has one result, right after the
// assistant's message, in the order of the calls, and that no other result is there.
func checkPairs(t fataler, r *record, g *reduce.Group) {
	at := 0
	for at < len(g.Messages) && g.Messages[at].Role != eventlog.RoleAssistant {
		at++
	}
	var calls []reduce.Block
	if at < len(g.Messages) {
		for _, b := range g.Messages[at].Blocks {
			if _, ok := b.Block.(eventlog.ToolCall); ok {
				calls = append(calls, b)
			}
		}
	}
	if len(calls) != len(g.Calls) {
		t.Fatalf("the group at %d makes %d calls and lists %d", g.First, len(calls), len(g.Calls))
	}
	for i, m := range g.Messages {
		n := i - at - 1
		if n < 0 || n >= len(calls) {
			if m.Role == eventlog.RoleTool || m.Role == eventlog.RoleAssistant && i != at {
				t.Fatalf("message %d of the group at %d should not be %v", i, g.First, m.Role)
			}
			continue
		}
		call := calls[n].Block.(eventlog.ToolCall)
		result, ok := m.Blocks[0].Block.(eventlog.ToolResult)
		if !ok || m.Role != eventlog.RoleTool || len(m.Blocks) != 1 || result.CallID != call.CallID {
			t.Fatalf("message %d of the group at %d is no answer to %s: %#v", i, g.First, call.CallID, m.Blocks)
		}
		answer, answered := r.answers[place{calls[n].Seq, calls[n].Index}]
		if at := (place{m.Blocks[0].Seq, m.Blocks[0].Index}); at != answer {
			t.Fatalf("call %s at %d is answered by %v instead of %v", call.CallID, calls[n].Seq, at, answer)
		}
		if listed := g.Calls[n]; listed.Interrupted == answered || listed.Result != i || listed.ID != call.CallID || !answered && !result.IsError {
			t.Fatalf("call %s at %d is listed as %+v", call.CallID, calls[n].Seq, listed)
		}
	}
}

// checkView holds what is shown against the log and the invariants of a view.
func checkView(t fataler, r *record, conv *reduce.Conversation, v reduce.View) {
	var sum uint64
	for _, m := range reducetest.Show(v) {
		sum += m.Tokens(gauge)
	}
	if sum != v.Tokens() {
		t.Fatalf("the view says %d tokens; what it shows has %d", v.Tokens(), sum)
	}
	got, want := v.TierTokens(), tiersOf(v)
	for _, tiers := range []map[budget.Tier]uint64{got, want} {
		maps.DeleteFunc(tiers, func(_ budget.Tier, n uint64) bool { return n == 0 })
	}
	if !maps.Equal(got, want) {
		t.Fatalf("the tiers have %v tokens; they should have %v", got, want)
	}
	here := map[*reduce.Group]bool{}
	for i := range v.Len() {
		g := v.Group(i)
		here[g] = true
		if n := len(v.Edits(i)); n > 0 && g.Pinned {
			t.Fatalf("the pinned group at %d has %d edits", g.First, n)
		}
		for _, e := range v.Edits(i) {
			checkEdit(t, g, e)
		}
		checkSealed(t, r, v, i)
	}
	digest, _ := v.Digest()
	gone := reduce.Digest{Through: digest.Through, Text: digest.Text, Tokens: digest.Tokens, SummaryTokens: digest.SummaryTokens}
	for _, g := range conv.Groups() {
		if here[g] {
			continue
		}
		if g.Anchor || g.Pinned || g.First > digest.Through {
			t.Fatalf("the group at %d is gone (anchor %v, pinned %v, digest through %d)", g.First, g.Anchor, g.Pinned, digest.Through)
		}
		gone.Groups++
		gone.Messages += len(g.Messages)
		gone.Calls += len(g.Calls)
		gone.RawTokens += g.Tokens
	}
	if digest != gone {
		t.Fatalf("the digest counts %+v; what is gone is %+v", digest, gone)
	}
}

// tiersOf counts each tier message by message.
func tiersOf(v reduce.View) map[budget.Tier]uint64 {
	tiers := map[budget.Tier]uint64{budget.TierSummary: 0}
	for _, m := range reducetest.Show(v) {
		switch {
		case m.Group == nil:
			tiers[budget.TierSummary] += m.Tokens(gauge)
		case m.Group.Kind == reduce.KindSystem:
			tiers[budget.TierSystem] += m.Tokens(gauge)
		case m.Role == eventlog.RoleTool:
			tiers[budget.TierToolResults] += m.Tokens(gauge)
			tiers[budget.TierDialogue] += 0
		default:
			tiers[budget.TierDialogue] += m.Tokens(gauge)
			tiers[budget.TierToolResults] += 0
		}
	}
	return tiers
}

// checkEdit checks that a replaced body says where the whole one is, and is not
// larger.
func checkEdit(t fataler, g *reduce.Group, e reduce.Edit) {
	b := g.Messages[e.Message].Blocks[e.Block]
	if e.Tokens > b.Tokens || e.Reducer == "" || e.Reason == "" {
		t.Fatalf("an edit of %d tokens grows, or has no reason: %+v", b.Tokens, e)
	}
	if e.Kind == reduce.Omitted {
		if _, ok := b.Block.(eventlog.Thinking); !ok {
			t.Fatalf("%T was left out", b.Block)
		}
		return
	}
	if _, text := b.Block.(eventlog.Text); text && !g.Anchor {
		reason := "newest messages alone"
		switch {
		case g.Human > 0:
			reason = "newest human message"
		case g.Kind == reduce.KindUser || g.Standing != "":
			reason = "the runtime put in"
		}
		if g.Sealed || !strings.Contains(e.Reason, reason) {
			t.Fatalf("a text of event %d was clipped (sealed %v): %s", b.Seq, g.Sealed, e.Reason)
		}
	}
	// The note of a cut is between lines of the body, which may hold pointers
	// of its own: one of those in the text must be the right one.
	for _, found := range pointed.FindAllStringSubmatch(e.Text, -1) {
		if seq, block, err := reduce.ParsePointer(found[1]); err == nil && seq == b.Seq && block == b.Index {
			return
		}
	}
	t.Fatalf("no pointer to event %d, block %d, in %q", b.Seq, b.Index, e.Text)
}

// pointed is the pointer at the end of what replaces something, alone or in a call.
var pointed = regexp.MustCompile(`(ctx:\d+\.\d+)(?:"\))?\]`)

// checkSealed checks that signed reasoning goes out whole or not at all.
func checkSealed(t fataler, r *record, v reduce.View, i int) {
	g := v.Group(i)
	if !g.Sealed {
		return
	}
	for m, msg := range g.Messages {
		thoughts, omitted := 0, 0
		for b, block := range msg.Blocks {
			edit, edited := v.Edit(i, m, b)
			thought, ok := block.Block.(eventlog.Thinking)
			if ok {
				thoughts++
			}
			if edited && edit.Kind == reduce.Omitted {
				omitted++
				if thought.Sealed() && !anthropics(thought, msg.Model) {
					t.Fatalf("a thought at %d was left out that %q sealed: %+v", g.First, msg.Model, thought)
				}
			} else if edited && msg.Role == eventlog.RoleAssistant {
				t.Fatalf("a signed message at %d was changed: %+v", g.First, edit)
			}
		}
		if omitted == 0 {
			continue
		}
		if omitted != thoughts {
			t.Fatalf("%d of %d thoughts at %d were left out", omitted, thoughts, g.First)
		}
		if !saidAfter(r, g.First) {
			t.Fatalf("the thoughts at %d belong to the open tool-use loop", g.First)
		}
	}
}

// anthropics reports whether Anthropic sealed a thought: it signs and redacts, and nobody
// else redacts.
func anthropics(thought eventlog.Thinking, model string) bool {
	return thought.EncryptedContent == "" && (strings.Contains(model, "claude") || model == "" && thought.RedactedData != "")
}

// saidAfter reports whether the user, or the system, said something after an event.
func saidAfter(r *record, seq eventlog.Seq) bool {
	for _, e := range r.events[seq:] {
		m, ok := e.Body.(*eventlog.Message)
		if !ok || m.Role != eventlog.RoleUser {
			continue
		}
		for _, b := range m.Blocks {
			if _, result := b.(eventlog.ToolResult); !result {
				return true
			}
		}
	}
	return false
}
