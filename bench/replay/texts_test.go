package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func textMessage(role contextdv1.Role, text string) *contextdv1.Message {
	return &contextdv1.Message{Role: role, Blocks: []*contextdv1.Block{{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: text}}}}}
}

// clipCase is a context that shows another text for a system prompt.
type clipCase struct {
	shown   string
	origin  contextdv1.Origin
	pointer *contextdv1.RedactionPointer
}

func TestCheckTextsOfTheAnchor(t *testing.T) {
	text := strings.Repeat("You are careful.\n", 20) + "Größe zählt.\n" + strings.Repeat("Use the tools.\n", 20)
	sum := sha256.Sum256([]byte(text))
	note := func(cut, pointer string) string {
		return fmt.Sprintf("\n[contextd: %d chars, %d lines cut here; %s]\n", utf8.RuneCountInString(cut), strings.Count(cut, "\n"), pointer)
	}
	head, tail := text[:40], text[len(text)-50:]
	cut := text[40 : len(text)-50]
	good := func() clipCase {
		return clipCase{head + note(cut, "ctx:1.0") + tail, contextdv1.Origin_ORIGIN_CLIPPED, &contextdv1.RedactionPointer{
			Pointer: "ctx:1.0", Policy: "clipping", Decision: "clipped", Reason: "too large", SourceSeq: 1,
			ContentChars: uint64(utf8.RuneCountInString(text)), ContentHash: "sha256:" + hex.EncodeToString(sum[:]),
		}}
	}
	for name, c := range map[string]struct {
		change func(*clipCase)
		wrong  string // expected in the error; empty is none
	}{
		"clipped":                   {func(*clipCase) {}, ""},
		"verbatim":                  {func(c *clipCase) { c.shown, c.origin, c.pointer = text, contextdv1.Origin_ORIGIN_VERBATIM, nil }, ""},
		"not in the record":         {func(c *clipCase) { c.pointer = nil }, "the record does not say so"},
		"of another block":          {func(c *clipCase) { c.pointer.SourceBlock = 1 }, "the record does not say so"},
		"by another reducer":        {func(c *clipCase) { c.pointer.Policy = "tool_results" }, "by \"tool_results\""},
		"without a reason":          {func(c *clipCase) { c.pointer.Reason = "" }, "because of \"\""},
		"stubbed":                   {func(c *clipCase) { c.pointer.Decision = "stubbed" }, "\"stubbed\""},
		"with another size":         {func(c *clipCase) { c.pointer.ContentChars++ }, "characters"},
		"with another hash":         {func(c *clipCase) { c.pointer.ContentHash = "sha256:00" }, "hash"},
		"with another pointer":      {func(c *clipCase) { c.shown = head + note(cut, "ctx:2.0") + tail }, "not head and tail"},
		"with another count":        {func(c *clipCase) { c.shown = head + note(cut[1:], "ctx:1.0") + tail }, "not head and tail"},
		"with another head":         {func(c *clipCase) { c.shown = "x" + c.shown }, "not head and tail"},
		"with another tail":         {func(c *clipCase) { c.shown += "x" }, "not head and tail"},
		"without a note":            {func(c *clipCase) { c.shown = head + tail }, "not head and tail"},
		"and its message verbatim":  {func(c *clipCase) { c.origin = contextdv1.Origin_ORIGIN_VERBATIM }, "does not say so"},
		"and another text added":    {func(c *clipCase) { c.shown += "\x00more" }, "shows 2 texts of 1"},
		"nothing left of it at all": {func(c *clipCase) { c.shown = "" }, "shows 0 texts of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			check := newChecker()
			check.observe(1, &contextdv1.Event{Kind: &contextdv1.Event_Message{Message: textMessage(contextdv1.Role_ROLE_SYSTEM, text)}})
			is := good()
			c.change(&is)
			shown := &contextdv1.Message{Role: contextdv1.Role_ROLE_SYSTEM}
			for part := range strings.SplitSeq(is.shown, "\x00") {
				if part != "" {
					shown.Blocks = append(shown.Blocks, textMessage(0, part).GetBlocks()...)
				}
			}
			header := &contextdv1.ContextHeader{Projection: &contextdv1.Projection{}}
			if is.pointer != nil {
				header.Projection.RedactionPointers = append(header.Projection.RedactionPointers, is.pointer)
			}
			err := check.check(answer{header: header, messages: []*contextdv1.RenderedMessage{{Message: shown, Origin: is.origin, SourceSeqs: []uint64{1}}}})
			if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("%v, want %q", err, c.wrong)
			}
		})
	}
}

func TestCheckNewest(t *testing.T) {
	for name, c := range map[string]struct {
		arguments, target int
		origin            contextdv1.Origin
		ok                bool
	}{
		"in full":                        {100, 10_000, contextdv1.Origin_ORIGIN_VERBATIM, true},
		"in the ledger":                  {100, 10_000, contextdv1.Origin_ORIGIN_SUMMARY, false},
		"in the ledger, with large call": {5_000, 10_000, contextdv1.Origin_ORIGIN_SUMMARY, true},
	} {
		t.Run(name, func(t *testing.T) {
			check := newChecker()
			call := &contextdv1.ToolCall{CallId: "c", Name: "write", ArgumentsJson: []byte(`"` + strings.Repeat("a", c.arguments) + `"`)}
			result := &contextdv1.ToolResult{CallId: "c"}
			turn := func(m *contextdv1.Message) *contextdv1.Event {
				m.GroupId = "g"
				return &contextdv1.Event{Kind: &contextdv1.Event_Message{Message: m}}
			}
			check.observe(1, turn(&contextdv1.Message{Role: contextdv1.Role_ROLE_ASSISTANT, Blocks: []*contextdv1.Block{{Kind: &contextdv1.Block_ToolCall{ToolCall: call}}}}))
			check.observe(2, turn(textMessage(contextdv1.Role_ROLE_ASSISTANT, "Written.")))
			check.observe(3, &contextdv1.Event{Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{
				Role: contextdv1.Role_ROLE_TOOL, Blocks: []*contextdv1.Block{{Kind: &contextdv1.Block_ToolResult{ToolResult: result}}},
			}}})
			err := check.checkNewest(answer{
				header:   &contextdv1.ContextHeader{Budget: &contextdv1.BudgetReport{TargetTokens: uint64(c.target)}},
				messages: []*contextdv1.RenderedMessage{{Origin: c.origin, SourceSeqs: []uint64{1, 2, 3}}},
			})
			if (err == nil) != c.ok {
				t.Error(err)
			}
		})
	}
}

// TestTextIsReadAsTheLogIs: blocks of the daemon and blocks of the log give the same text to measure.
func TestTextIsReadAsTheLogIs(t *testing.T) {
	sent := []*contextdv1.Block{
		{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: `{"path": "a\nb"}`}}},
		{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{Name: "edit", ArgumentsJson: []byte(`{"old": "if x {\n\treturn"}`)}}},
		{Kind: &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{Content: []*contextdv1.Block{
			{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: `{"output": "line 1\nline 2"}`}}},
			{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: "and more"}}},
		}}}},
	}
	got := answer{header: &contextdv1.ContextHeader{}, messages: []*contextdv1.RenderedMessage{{Message: &contextdv1.Message{Blocks: sent}}}}.rendered().Text
	for _, want := range []string{"a\nb", "edit\x00", "if x {\n\treturn", "line 1\nline 2", "\x00and more\x00"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}

// TestTextsInPlaceOfMedia: only texts that describe media are dropped, not texts that merely look like it.
func TestTextsInPlaceOfMedia(t *testing.T) {
	media := &contextdv1.Block{Kind: &contextdv1.Block_Media{Media: &contextdv1.Media{MimeType: "image/png"}}}
	said := textMessage(contextdv1.Role_ROLE_USER, "[contextd: mine; ctx:1.0]")
	said.Blocks = append(said.GetBlocks(), media, media)
	got := undescribed([]string{"[contextd: mine; ctx:1.0]", "[contextd: image/png; ctx:1.1]", "[contextd: image/png; ctx:1.3]"}, []uint64{1}, map[uint64]*contextdv1.Message{1: said})
	if want := []string{"[contextd: mine; ctx:1.0]", "[contextd: image/png; ctx:1.3]"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	messages := []*contextdv1.RenderedMessage{{SourceSeqs: []uint64{1}, Origin: contextdv1.Origin_ORIGIN_STUBBED, Message: said}}
	if _, err := (anchored{1, said}).in(messages); err != nil {
		t.Errorf("a message with described media: %v", err)
	}
	if _, err := (anchored{1, textMessage(contextdv1.Role_ROLE_USER, "text")}).in(messages); err == nil {
		t.Error("a text may be a stub")
	}
}
