package render_test

import (
	"slices"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// TestHostedReasoning: the lists in which a host gave sealed reasoning are sent with the message that they came with, as they
// were, or not at all.
func TestHostedReasoning(t *testing.T) {
	const (
		details = `"reasoning_details":[{"type":"reasoning.summary","summary":"A \u00e9.","format":"openai-responses-v1","index":0},{"type":"reasoning.encrypted","data":"gA==","id":"rs_1","format":"openai-responses-v1","index":0,"n":1.0}]`
		blocks  = `"thinking_blocks":[{"type":"thinking","thinking":"Look.","signature":"c2ln"},{"type":"redacted_thinking","data":"cmVk"}]`
		of      = `"reasoning_details":[{"type":"reasoning.encrypted","data":"gA==","id":"`
	)
	thinks := func(members string) eventlog.Block {
		return eventlog.Thinking{Text: "Look.", Signature: "{" + members + "}"}
	}
	call, said := makes("c1", "read", "{}"), text("I look.")
	long := strings.Repeat("i", 41)
	many := []eventlog.Block{thinks(details)}
	for i := range 130 {
		many = append(many, makes("c"+strings.Repeat("x", i%30)+string(rune('A'+i/30)), "read", "{}"))
	}
	for _, c := range []struct {
		name, model, asked string
		blocks             []eventlog.Block
		want               string // what is sent, between the content and the calls; "" if nothing is
		change             func(m *render.Message)
	}{
		{name: "with a call", model: "openai/gpt-5", asked: "openai/gpt-5", blocks: []eventlog.Block{thinks(details), call}, want: details},
		{name: "blocks", model: "claude-opus-5", blocks: []eventlog.Block{thinks(blocks), said}, want: blocks},
		{name: "both", blocks: []eventlog.Block{said, thinks(details + "," + blocks), call}, want: details + "," + blocks},
		{name: "for an alias", model: "openai/gpt-5", asked: "smart", blocks: []eventlog.Block{thinks(details), call}, want: details},
		{name: "for another maker", model: "openai/gpt-5", asked: "google/gemini-3-pro", blocks: []eventlog.Block{thinks(details), call}},
		{name: "of two responses", blocks: []eventlog.Block{thinks(details), said, thinks(blocks), call}},
		{name: "for a model that gets the text", blocks: []eventlog.Block{thinks(details), call}, change: func(m *render.Message) { m.ReturnReasoning = true }},
		{name: "where some was left out", blocks: []eventlog.Block{thinks(details), call}, change: func(m *render.Message) { m.Unreasoned = true }},
		{name: "that nothing follows", blocks: []eventlog.Block{thinks(details)}},
		{name: "more calls than a message may have", blocks: many, want: details},
		{name: "a call that is renamed", blocks: []eventlog.Block{thinks(of + long + `"}]`), makes(long, "read", "{}")}, want: of + render.WireCallID(long, 0) + `"}]`},
		{name: "a call that used its id before", blocks: []eventlog.Block{thinks(of + `c1"}]`), call}, want: of + render.WireCallID("c1", 2) + `"}]`,
			change: func(m *render.Message) { m.Repeats = []uint32{0, 2} }},
		{name: "with another member", blocks: []eventlog.Block{thinks(details + `,"more":1`), call}},
		{name: "no list", blocks: []eventlog.Block{thinks(`"reasoning_details":{}`), call}},
		{name: "an empty list", blocks: []eventlog.Block{thinks(`"reasoning_details":[]`), call}},
		{name: "of other things", blocks: []eventlog.Block{thinks(`"thinking_blocks":[{"TYPE":"thinking"}]`), call}},
		{name: "half a surrogate pair", blocks: []eventlog.Block{thinks(`"thinking_blocks":[{"type":"thinking","thinking":"\ud83d","signature":"s"}]`), call}},
		{name: "cut off", blocks: []eventlog.Block{eventlog.Thinking{Signature: `{"reasoning_details":[{"type":`}, call}},
	} {
		for _, f := range render.Formats() {
			if f.Name == "" {
				continue
			}
			m := by(c.model, c.blocks...)
			m.Asked = c.asked
			if c.change != nil {
				c.change(&m)
			}
			shown, left := "", 0
			for _, fragment := range f.Fragments(m) {
				shown += string(fragment.JSON)
				left += len(slices.DeleteFunc(slices.Clone(fragment.Conversions), func(c render.Conversion) bool { return c.Kind != render.LeftOut }))
			}
			sent := strings.Contains(shown, "reasoning_details") || strings.Contains(shown, "thinking_blocks") || strings.Contains(shown, "encrypted")
			if f.Name != "openai_chat" {
				if sent || strings.Contains(shown, "c2ln") || left == 0 && !m.ReturnReasoning {
					t.Errorf("%s: %s has the seal, or does not say that it left it out: %s", c.name, f.Name, shown)
				}
				continue
			}
			if sent != (c.want != "") || strings.Count(shown, "reasoning_details") > 1 || !strings.Contains(shown, c.want) {
				t.Errorf("%s: %s, want %s", c.name, shown, c.want)
			}
			if left == 0 && c.want == "" && !m.ReturnReasoning {
				t.Errorf("%s: it is not said that the seal is left out", c.name)
			}
		}
	}
}

// TestHostedCallSignature: a call's signature goes with the call, in Gemini's own format as its own.
func TestHostedCallSignature(t *testing.T) {
	const google, fields = `"extra_content":{"google":{"thought_signature":"c2ln"}}`, `"provider_specific_fields":{"thought_signature":"c2ln"}`
	for _, c := range []struct{ members, model, asked, chat, gemini string }{
		{google, "gemini-3-pro", "gemini-3-pro", "," + google, "c2ln"},
		{fields, "", "", "," + fields, "skip_thought_signature_validator"},
		{google, "gemini-3-pro", "gpt-5", "", "c2ln"},
		{`"extra_content":{"google":{"thought_signature":"no base64"}}`, "", "", `,"extra_content":{"google":{"thought_signature":"no base64"}}`, "skip_thought_signature_validator"},
		{`"extra_content":["c2ln"]`, "", "", "", "skip_thought_signature_validator"},
		{`"extra_content":{"google":{"thought_signature":"c2ln\ud83d"}}`, "", "", "", "skip_thought_signature_validator"},
	} {
		m := by(c.model, native("openai", "{"+c.members+"}"), run("c1", "{}"))
		m.Asked = c.asked
		for format, want := range map[string]string{
			"openai_chat": `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{}"}` + c.chat + `}]}`,
			"gemini":      `{"functionCall":{"id":"c1","name":"bash","args":{}},"thoughtSignature":"` + c.gemini + `"}`,
		} {
			f, _ := render.FormatNamed(format)
			if got := string(f.Fragments(m)[0].JSON); got != want {
				t.Errorf("%s for %q: %s, want %s", c.members, c.asked, got, want)
			}
		}
		for _, format := range []string{"anthropic", "openai_responses"} {
			f, _ := render.FormatNamed(format)
			lines := linesOf(joined(f, []render.Message{user(text("go")), m, result("c1", "bash", text("ok"))}))
			if got := slices.Concat(lines...); strings.Contains(string(got), "c2ln") {
				t.Errorf("%s: %s", format, got)
			}
			for _, v := range rules.Of(format)(lines) {
				t.Errorf("%s: %v", format, v)
			}
		}
	}
}
