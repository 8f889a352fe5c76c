package reducetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// Shown is a message as a model would see it, made from a view by the simplest
// possible rendering.
type Shown struct {
	Group   *reduce.Group // nil for the digest
	Role    eventlog.Role
	Seqs    []eventlog.Seq
	Blocks  []eventlog.Block
	Edits   []reduce.Edit
	Dropped *reduce.Dropped
}

// Show renders a view.
func Show(v reduce.View) []Shown {
	digest, at := v.Digest()
	var all []Shown
	for i := range v.Len() + 1 {
		if i == at && digest.Through > 0 {
			all = append(all, Shown{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: digest.Text}}})
		}
		if i < v.Len() {
			all = append(all, showGroup(v, i)...)
		}
	}
	return all
}

func showGroup(v reduce.View, i int) []Shown {
	g := v.Group(i)
	if d := v.Dropped(i); d != nil {
		if d.Text == "" {
			return nil
		}
		return []Shown{{Group: g, Role: eventlog.RoleUser, Seqs: []eventlog.Seq{g.First}, Blocks: []eventlog.Block{eventlog.Text{Text: d.Text}}, Dropped: d}}
	}
	var all []Shown
	for m, msg := range g.Messages {
		s := Shown{Group: g, Role: msg.Role, Seqs: msg.Seqs}
		for b, block := range msg.Blocks {
			edit, ok := v.Edit(i, m, b)
			if ok {
				s.Edits = append(s.Edits, edit)
			}
			if !ok || edit.Kind != reduce.Omitted {
				s.Blocks = append(s.Blocks, changed(block.Block, edit, ok))
			}
		}
		all = append(all, s)
	}
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

// Tokens counts a message from nothing.
func (s Shown) Tokens(gauge budget.Gauge) uint64 {
	n := uint64(budget.MessageOverhead)
	for _, b := range s.Blocks {
		n += gauge.Block(b)
	}
	return n
}

// Bytes represents what would be sent.
func (s Shown) Bytes() string { return fmt.Sprintf("%v %#v", s.Role, s.Blocks) }

// Bytes represent what would be sent of a view.
func Bytes(v reduce.View) []string { return BytesOf(Show(v)) }

// BytesOf represent what would be sent of messages.
func BytesOf(all []Shown) []string {
	out := make([]string, len(all))
	for i := range all {
		out[i] = all[i].Bytes()
	}
	return out
}

var editMarks = [...]string{reduce.Stubbed: "stub", reduce.Clipped: "clip", reduce.Omitted: "part", reduce.Redacted: "redacted"}

// Line describes the message in one line: its events, its role, what was done to
// it, its size and its text.
func (s Shown) Line(gauge budget.Gauge) string {
	seqs := make([]string, len(s.Seqs))
	for i, seq := range s.Seqs {
		seqs[i] = fmt.Sprint(seq)
	}
	mark := ""
	switch {
	case s.Group == nil:
		mark = "digest"
	case s.Dropped != nil:
		mark = "left"
	case len(s.Seqs) == 0:
		mark = "synthetic"
	case len(s.Edits) > 0:
		mark = editMarks[s.Edits[0].Kind]
	case s.Group.Anchor:
		mark = "anchor"
	case s.Group.Pinned:
		mark = "pinned"
	}
	return fmt.Sprintf("%5s %-9s %-9s %4dt  %s", strings.Join(seqs, ","), s.Role, mark, s.Tokens(gauge), shorten(s.Text(), 92))
}

// Text returns what is to be read, its blocks divided by bars.
func (s Shown) Text() string {
	parts := make([]string, len(s.Blocks))
	for i, b := range s.Blocks {
		parts[i] = blockText(b)
	}
	return strings.Join(parts, " | ")
}

// InFull returns the message of an event, or with digest that of the digest, with the edits that are of
// one of the kinds, or of any where none is given. It holds no blank line, at which the output of a
// script ends.
func InFull(v reduce.View, seq eventlog.Seq, digest bool, kinds ...reduce.EditKind) string {
	for _, m := range Show(v) {
		if m.Group == nil && digest || len(m.Seqs) > 0 && m.Seqs[0] == seq {
			out := strings.TrimSpace(m.Text())
			for _, e := range m.Edits {
				if len(kinds) == 0 || slices.Contains(kinds, e.Kind) {
					out += fmt.Sprintf("\n(%s: %s)", e.Reducer, e.Reason)
				}
			}
			return strings.ReplaceAll(out, "\n\n", "\n.\n") + "\n"
		}
	}
	return "not shown\n"
}

func blockText(b eventlog.Block) string {
	switch b := b.(type) {
	case eventlog.Text:
		return b.Text
	case eventlog.Thinking:
		if b.Sealed() {
			return "(signed) " + b.Text
		}
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
