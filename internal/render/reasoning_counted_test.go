package render_test

import (
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
)

// TestReasoningThatIsSentIsCounted: no format sends a text or a seal of reasoning that the gauge takes for omitted, whoever
// wrote it and whatever else is in the message.
func TestReasoningThatIsSentIsCounted(t *testing.T) {
	const text, signature, redacted, encrypted = "AaaA", "BbbBBbbB", "CccCCccC", "DddDDddD"
	whole := `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"` + text + `"}],"encrypted_content":"` + encrypted + `"}`
	hosted := `{"reasoning_details":[{"type":"reasoning.text","text":"` + text + `","signature":"` + signature + `"}]}`
	besides := [][]eventlog.Block{nil, {eventlog.Thinking{EncryptedContent: "e"}}, {eventlog.Thinking{RedactedData: "r"}}, {eventlog.Thinking{Signature: "s"}}}
	sent, omitted := 0, 0
	for _, f := range render.Formats() {
		for _, returned := range []bool{false, true} {
			gauge := f.GaugeFor(budget.NewGauge(budget.Heuristic{}), counted(returned))
			for _, model := range []string{"", "anthropic/claude-opus-4-8", "gpt-5", "claude-opus-4-8", "gemini-3-pro", "grok-4", "qwen3-claude-gpt-distill"} {
				for i := range 48 {
					b := eventlog.Thinking{
						Text: pick(i&1, text), Signature: pick(i>>1&1, signature), RedactedData: pick(i>>2&1, redacted), EncryptedContent: pick(i>>3&1, encrypted),
					}
					switch i >> 4 {
					case 1:
						b.Signature = whole
					case 2:
						b.Signature = hosted
					}
					for _, beside := range besides {
						m := by(model, append(append([]eventlog.Block{b}, beside...), eventlog.Text{Text: "so"})...)
						m.ReturnReasoning = returned
						shown := ""
						for _, fragment := range f.Fragments(m) {
							shown += string(fragment.JSON)
						}
						counted := gauge.Sent(b, model, gauge.Block(b))
						seal := strings.Contains(shown, "bbBBbb") || strings.Contains(shown, "ccCCcc") || strings.Contains(shown, "ddDDdd")
						switch {
						case seal && counted < gauge.Block(b):
							t.Errorf("%s, %q, returned %t: %+v is counted as %d, and its seal is sent: %s", f.Name, model, returned, b, counted, shown)
						case strings.Contains(shown, text) && counted < gauge.Text(b.Text):
							t.Errorf("%s, %q, returned %t: %+v is counted as %d, and its text is sent: %s", f.Name, model, returned, b, counted, shown)
						case seal || strings.Contains(shown, text):
							sent++
						case counted == 0:
							omitted++
						}
					}
				}
			}
		}
	}
	if sent < 500 || omitted < 1000 {
		t.Errorf("%d blocks are sent, %d omitted and not counted", sent, omitted)
	}
}

func pick(i int, s string) string { return strings.Repeat(s, i) }

// TestReasoningOfOthers is not counted for a provider that does not get it.
func TestReasoningOfOthers(t *testing.T) {
	signed := eventlog.Thinking{Text: "hm", Signature: strings.Repeat("s", 1000)}
	encrypted := eventlog.Thinking{Text: "hm", EncryptedContent: strings.Repeat("e", 1000)}
	hosted := eventlog.Thinking{Text: "hm", Signature: `{"reasoning_details":[{"type":"reasoning.encrypted","data":"` + strings.Repeat("e", 935) + `"}]}`}
	for _, c := range []struct {
		format, model string
		returned      bool
		block         eventlog.Thinking
		want          uint64
	}{
		{"", "claude-opus-5", false, signed, 200},
		{"anthropic", "claude-opus-5", false, signed, 200},
		{"anthropic", "gemini-3-pro", false, signed, 0},
		{"anthropic", "gpt-5", false, encrypted, 0},
		{"anthropic", "", false, encrypted, 200},
		{"anthropic", "gemini-3-pro", true, signed, 200},
		{"anthropic", "gpt-5", true, encrypted, 1},
		{"anthropic", "grok-4", false, eventlog.Thinking{Text: "hm"}, 0},
		{"openai_chat", "gpt-5", false, encrypted, 0},
		{"openai_chat", "gpt-5", true, encrypted, 1},
		{"openai_chat", "", false, signed, 0},
		{"openai_chat", "anthropic/claude-opus-5", false, hosted, 200},
		{"openai_chat", "", false, hosted, 200},
		{"openai_chat", "moonshotai/kimi-k2", true, hosted, 1},
		{"anthropic", "claude-opus-5", false, hosted, 0},
		{"anthropic", "", false, hosted, 0},
		{"anthropic", "deepseek-flash", true, hosted, 1},
		{"openai_responses", "", false, hosted, 0},
		{"gemini", "google/gemini-3-pro", false, hosted, 0},
		{"openai_responses", "gpt-5", false, encrypted, 200},
		{"openai_responses", "claude-opus-5", false, signed, 0},
		{"openai_responses", "claude-opus-5", true, signed, 1},
		{"gemini", "gemini-3-pro", false, signed, 200},
		{"gemini", "gemini-3-pro", false, eventlog.Thinking{Text: "hm"}, 1},
		{"gemini", "claude-opus-5", false, signed, 0},
	} {
		f, _ := render.FormatNamed(c.format)
		gauge := f.GaugeFor(budget.NewGauge(budget.Heuristic{}), counted(c.returned))
		if got := gauge.Sent(c.block, c.model, gauge.Block(c.block)); got != c.want {
			t.Errorf("%q, %s, returned %t: %d tokens, want %d", c.format, c.model, c.returned, got, c.want)
		}
		if named := strings.HasSuffix(gauge.Name(), "+returned"); named != c.returned {
			t.Errorf("a gauge is named %q", gauge.Name())
		}
	}
}

func counted(returned bool) budget.CountedReasoning {
	if returned {
		return budget.ReturnedReasoning
	}
	return budget.SentReasoning
}
