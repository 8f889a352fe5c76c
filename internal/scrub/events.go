package scrub

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// Event returns a copy of the event with credentials replaced in texts, reasoning, calls and results. Sealed
// reasoning, provider blocks, media and labels stay unchanged, since the provider would refuse a changed byte
// there.
func (s *Scrubber) Event(e eventlog.Event) eventlog.Event {
	if s == nil {
		return e
	}
	switch body := e.Body.(type) {
	case *eventlog.Message:
		m := *body
		m.Blocks = s.blocks(body.Blocks)
		e.Body = &m
	case *eventlog.Reminder:
		r := *body
		r.Body = s.Text(body.Body)
		e.Body = &r
	case *eventlog.Compaction:
		c := *body
		c.Summary = s.Text(body.Summary)
		c.NativeJSON = s.JSON(body.NativeJSON)
		e.Body = &c
	case *eventlog.Custom:
		c := *body
		c.JSON = s.JSON(body.JSON)
		e.Body = &c
	}
	return e
}

// Shown is Event for a context, and returns how many credentials were replaced. An assistant message with
// sealed parts stays unchanged as a whole, because it must be sent unchanged or not at all.
func (s *Scrubber) Shown(e eventlog.Event) (_ eventlog.Event, replaced int) {
	if m, ok := e.Body.(*eventlog.Message); ok && m.Role == eventlog.RoleAssistant && slices.ContainsFunc(m.Blocks, sealed) {
		return e, 0
	}
	counting := &Scrubber{custom: s.custom, observe: func(_ string, n int) { replaced += n }}
	scrubbed := counting.Event(e)
	if replaced > 0 {
		scrubbed.Tokens = eventlog.TokenCounts{} // they were counted for the unscrubbed text
	}
	return scrubbed, replaced
}

func sealed(b eventlog.Block) bool {
	switch b := b.(type) {
	case eventlog.Thinking:
		return b.Sealed()
	case eventlog.ProviderBlock:
		members, ok := provider.Members(b)
		return !ok || provider.SealedMembers(members)
	}
	return false
}

func (s *Scrubber) blocks(blocks []eventlog.Block) []eventlog.Block {
	out := make([]eventlog.Block, len(blocks))
	for i, b := range blocks {
		switch v := b.(type) {
		case eventlog.Text:
			v.Text = s.Text(v.Text)
			b = v
		case eventlog.Thinking:
			if !v.Sealed() {
				v.Text = s.Text(v.Text)
			}
			b = v
		case eventlog.ToolCall:
			v.Arguments = s.JSON(v.Arguments)
			b = v
		case eventlog.ToolResult:
			v.Content = s.blocks(v.Content)
			b = v
		}
		out[i] = b
	}
	return out
}

// JSON replaces credentials in a JSON text so that valid JSON stays valid. All other bytes stay unchanged.
func (s *Scrubber) JSON(text string) string {
	if s == nil {
		return text
	}
	out := s.Text(text)
	if out == text || json.Valid([]byte(out)) || !json.Valid([]byte(text)) {
		return out
	}
	return s.jsonStrings(text)
}

// jsonStrings scrubs each string of a JSON text on its own, for patterns that would match across strings.
func (s *Scrubber) jsonStrings(text string) string {
	var out strings.Builder
	from := 0
	decoder := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		if decoder.PeekKind() != '"' {
			if _, err := decoder.ReadToken(); err != nil { // the end: the text is JSON
				break
			}
			continue
		}
		raw, err := decoder.ReadValue()
		if err != nil {
			break
		}
		end := int(decoder.InputOffset())
		begin := end - len(raw)
		was, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			continue
		}
		now := s.Text(string(was))
		if now == string(was) {
			continue
		}
		quoted, err := jsontext.AppendQuote(nil, now)
		if err != nil {
			continue
		}
		out.WriteString(text[from:begin])
		out.Write(quoted)
		from = end
	}
	out.WriteString(text[from:])
	return out.String()
}
