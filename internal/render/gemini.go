package render

import (
	"strings"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// gemini is Google's generateContent: the system line is the request's system
// instruction, each other line one of its contents. The user and the model take turns.
var gemini = Format{
	Name: "gemini", Fragments: geminiFragments, Join: geminiJoin, Tools: geminiTools,
	Framing: budget.Framing{Call: 34, Result: 14, EstimatedCall: 34, EstimatedResult: 14}, limits: &geminiLimits,
	Reasoning: geminiReasoning,
}

const (
	// providerGoogle names Google in blocks that are carried as they came.
	providerGoogle    = "google"
	longestGeminiName = 64
	speakerModel      = "model"
	geminiOpening     = `{"text":"` + openingText + `"}`
)

func geminiFragments(m Message) []Fragment { return geminiLimits.noted(&m, geminiSaid(m)) }

func geminiSaid(m Message) []Fragment {
	c := &content{message: &m}
	switch m.Role {
	case eventlog.RoleSystem:
		return geminiSystem(c)
	case eventlog.RoleAssistant:
		geminiModel(c)
		return c.fragments(speakerModel)
	case eventlog.RoleTool:
		return geminiResults(c)
	default:
		for i, b := range m.Blocks {
			geminiInput(c, i, b)
		}
		return c.fragments(speakerUser)
	}
}

func geminiJoin(fragments []Fragment) []Encoded {
	system, rest := turns(geminiLimits.within(settled(fragments), geminiFragments), geminiOpening)
	out := runs(system, func(string) (string, string) { return `{"systemInstruction":{"parts":[`, `]}}` })
	for i := range out {
		out[i].System = true
	}
	return append(out, runs(mediaLast(named(rest)), func(speaker string) (string, string) {
		return `{"role":"` + speaker + `","parts":[`, `]}`
	})...)
}

// mediaLast puts the media of results, which are elsewhere, after the last of the
// responses that follow each other: nothing may part these.
func mediaLast(fragments []Fragment) []Fragment {
	out := make([]Fragment, 0, len(fragments))
	var media []Fragment
	for i, f := range fragments {
		out = append(out, f)
		if f.Role != eventlog.RoleTool {
			continue
		}
		if len(f.Elsewhere) > 0 {
			media = append(media, Fragment{Message: Message{Role: f.Role, Origin: f.Origin}, Speaker: speakerUser, JSON: f.Elsewhere})
		}
		if i+1 == len(fragments) || fragments[i+1].Role != eventlog.RoleTool {
			out = append(out, media...)
			media = nil
		}
	}
	return out
}

// geminiSystem makes the parts of the system instruction, which are texts, and the
// user's text that they become elsewhere.
func geminiSystem(c *content) []Fragment {
	var texts []string
	for i, b := range c.message.Blocks {
		text, ok := systemText(c, i, b)
		if ok {
			texts = append(texts, text)
			c.add(said, i, geminiText(text, ""))
		}
	}
	out := c.fragments("system")
	if len(out) > 0 {
		out[0].Elsewhere = geminiText(reminderText(strings.Join(texts, "\n")), "")
	}
	return out
}

// geminiInput makes a part of what the user says.
func geminiInput(c *content, i int, block eventlog.Block) {
	switch b := block.(type) {
	case eventlog.Text:
		if c.shown(i, b.Text) {
			c.add(said, i, geminiText(b.Text, ""))
		}
	case eventlog.Media:
		c.add(said, i, geminiMedia(c, i, b, ""))
	case eventlog.ProviderBlock:
		if part, ok := geminiNative(b, speakerUser); ok {
			c.add(said, i, part)
		} else {
			c.add(said, i, geminiText(c.foreign(i, b), ""))
		}
	case eventlog.ToolResult:
		c.add(said, i, geminiText(c.describe(i, "tool result"), ""))
	case eventlog.ToolCall:
		c.add(said, i, geminiText(c.describe(i, "tool call "+brief(b.Name)), ""))
	case eventlog.Thinking:
		c.converted(i, LeftOut, reasoningOf(b, c.message.Model))
	}
}

// geminiText is a part of text, perhaps with the signature that belongs to it.
func geminiText(text, signature string) []byte {
	o := begin(len(text) + len(signature))
	o.always("text", text)
	o.str("thoughtSignature", signature)
	return append(o.dst, '}')
}

// geminiNameByte reports whether a function's name may have c at i.
func geminiNameByte(i int, c byte) bool {
	if i == 0 && (c == '-' || '0' <= c && c <= '9') {
		return false
	}
	return wordByte(i, c) || i > 0 && (c == '.' || c == ':')
}
