package reduce_test

import (
	"fmt"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// shown is a message as a model would see it, made from a view by the simplest
// possible rendering.
type shown struct {
	group  *reduce.Group // nil for the digest
	role   eventlog.Role
	seqs   []eventlog.Seq
	blocks []eventlog.Block
	edits  []reduce.Edit
}

func show(v reduce.View) []shown {
	digest, at := v.Digest()
	var all []shown
	put := func(i int) {
		if i == at && digest.Through > 0 {
			all = append(all, shown{role: eventlog.RoleUser, blocks: []eventlog.Block{eventlog.Text{Text: digest.Text}}})
		}
	}
	for i := range v.Len() {
		put(i)
		if d := v.Dropped(i); d != nil {
			if d.Text != "" {
				all = append(all, shown{group: v.Group(i), role: eventlog.RoleUser, blocks: []eventlog.Block{eventlog.Text{Text: d.Text}}})
			}
			continue
		}
		for m, msg := range v.Group(i).Messages {
			s := shown{group: v.Group(i), role: msg.Role, seqs: msg.Seqs}
			for b, block := range msg.Blocks {
				edit, ok := v.Edit(i, m, b)
				if ok {
					s.edits = append(s.edits, edit)
				}
				if !ok || edit.Kind != reduce.Omitted {
					s.blocks = append(s.blocks, changed(block.Block, edit, ok))
				}
			}
			all = append(all, s)
		}
	}
	put(v.Len())
	return all
}

func changed(block eventlog.Block, edit reduce.Edit, ok bool) eventlog.Block {
	if !ok {
		return block
	}
	if r, isResult := block.(eventlog.ToolResult); isResult {
		r.Content = []eventlog.Block{eventlog.Text{Text: edit.Text}}
		return r
	}
	return eventlog.Text{Text: edit.Text}
}

// tokens counts a message from nothing.
func (s shown) tokens() uint64 {
	n := uint64(budget.MessageOverhead)
	for _, b := range s.blocks {
		n += gauge.Block(b)
	}
	return n
}

// bytes stands for what would be sent.
func (s shown) bytes() string { return fmt.Sprintf("%v %#v", s.role, s.blocks) }

// line describes the message in one line: its events, its role, what was done to
// it, its size and its text.
func (s shown) line() string {
	seqs := make([]string, len(s.seqs))
	for i, seq := range s.seqs {
		seqs[i] = fmt.Sprint(seq)
	}
	mark := ""
	switch {
	case s.group == nil:
		mark = "digest"
	case len(s.seqs) == 0:
		mark = "synthetic"
	case len(s.edits) > 0:
		mark = [...]string{reduce.Stubbed: "stub", reduce.Clipped: "clip", reduce.Omitted: "part", reduce.Redacted: "redacted"}[s.edits[0].Kind]
	case s.group.Anchor:
		mark = "anchor"
	case s.group.Pinned:
		mark = "pinned"
	}
	return fmt.Sprintf("%5s %-9s %-9s %4dt  %s", strings.Join(seqs, ","), s.role, mark, s.tokens(), shorten(s.text(), 76))
}

func (s shown) text() string {
	parts := make([]string, len(s.blocks))
	for i, b := range s.blocks {
		parts[i] = blockText(b)
	}
	return strings.Join(parts, " | ")
}

func blockText(b eventlog.Block) string {
	switch b := b.(type) {
	case eventlog.Text:
		return b.Text
	case eventlog.Thinking:
		return "(think) " + b.Text
	case eventlog.ToolCall:
		return fmt.Sprintf("call %s %s %s", b.CallID, b.Name, b.Arguments)
	case eventlog.ToolResult:
		mark := ""
		if b.IsError {
			mark = "!"
		}
		parts := make([]string, len(b.Content))
		for i, c := range b.Content {
			parts[i] = blockText(c)
		}
		return b.CallID + mark + ": " + strings.Join(parts, " + ")
	default:
		return fmt.Sprintf("%T", b)
	}
}

func shorten(s string, n int) string {
	s = strings.ReplaceAll(s, "\n", "⏎")
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}
