package render

import (
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// openAIResponses is OpenAI's Responses: each line is one item of the request's input.
var openAIResponses = Format{
	Name: "openai_responses", Fragments: responsesFragments, Join: responsesJoin, Framing: openAIFraming,
	Reasoning: responsesReasoning, PromptCacheKey: true, Tools: openAIResponsesTools, limits: &responsesLimits,
}

func responsesFragments(m Message) []Fragment { return responsesLimits.noted(&m, responsesSaid(m)) }

func responsesSaid(m Message) []Fragment {
	switch m.Role {
	case eventlog.RoleAssistant:
		maker := provider.Maker(m.Model, m.Blocks)
		return (&responsesTurn{message: m, maker: maker, loose: looseReasoning(m, maker)}).fragments()
	case eventlog.RoleSystem:
		p := responsesParts(&m, false)
		for i, b := range m.Blocks {
			p.add(i, b)
		}
		return responsesMessage(m, p, "system")
	}
	var out []Fragment
	p := responsesParts(&m, true)
	for i, b := range m.Blocks {
		if r, ok := b.(eventlog.ToolResult); ok {
			out = append(out, responsesResult(&m, i, r))
		} else {
			p.add(i, b)
		}
	}
	return once(append(out, responsesMessage(m, p, "user")...))
}

// responsesJoin passes the items on, except that leading system messages become one. An item whose id an earlier one has
// is replaced by its Elsewhere, because the provider refuses duplicate ids.
func responsesJoin(fragments []Fragment) []Encoded {
	fragments = responsesLimits.within(settled(fragments), responsesFragments)
	out := make([]Encoded, 0, len(fragments))
	if n := openAISystem(fragments); n > 0 {
		out = append(out, openAIPrompt(fragments[:n], responsesHead("system")))
		fragments = fragments[n:]
	}
	ids := map[string]bool{}
	for i := range fragments {
		f := &fragments[i]
		if f.ID == "" || !ids[f.ID] {
			out = append(out, f.encoded())
		} else if len(f.Elsewhere) > 0 {
			other := *f
			other.JSON = f.Elsewhere
			again := Conversion{Kind: Described, What: "item whose id an earlier one has"}
			if len(f.Seqs) > 0 {
				again.Seq = f.Seqs[0]
			}
			other.Conversions = append(slices.Clone(f.Conversions), again)
			out = append(out, other.encoded())
		}
		ids[f.ID] = true
	}
	return out
}

func responsesHead(role string) string { return `{"type":"message","role":"` + role + `","content":[` }

// responsesParts gathers a content list; media are shown to the model in the user's
// messages and in results.
func responsesParts(m *Message, media bool) *openAIParts {
	p := &openAIParts{message: m, text: "input_text"}
	if media {
		p.media, p.native = responsesMedia, responsesPart
	}
	return p
}

// responsesMessage is the item of a message; none without parts. Elsewhere holds the parts alone.
func responsesMessage(m Message, p *openAIParts, role string) []Fragment {
	if p.count == 0 {
		return nothing(m, p.conversions)
	}
	json := append([]byte(responsesHead(role)), p.dst...)
	return []Fragment{{Message: m, Speaker: role, JSON: append(json, ']', '}'), Elsewhere: p.dst, Conversions: p.conversions}}
}

// responsesMedia appends the part of a medium.
func responsesMedia(dst []byte, b eventlog.Media) ([]byte, bool) {
	if url, ok := openAIImage(nil, b); ok {
		return responsesImage(dst, "image_url", url, ""), true
	}
	kind := mediaType(b)
	if kind != "application/pdf" {
		return dst, false
	}
	o := object{dst: append(dst, '{')}
	o.always("type", "input_file")
	switch {
	case b.Data != "":
		o.always("filename", "document.pdf")
		o.name("file_data")
		o.dst = appendDataURL(o.dst, kind, b.Data)
	case onTheWeb(b.URI):
		o.always("file_url", b.URI)
	default:
		return dst, false
	}
	return append(o.dst, '}'), true
}

// responsesResult is the item of a result. Its output is a string if the result is one text, and else a list, which may
// be empty.
func responsesResult(m *Message, i int, r eventlog.ToolResult) Fragment {
	p := responsesParts(m, true)
	for _, b := range r.Content {
		p.add(i, b)
	}
	if p.count == 0 && r.IsError {
		p.say(i, "[error]")
	}
	o := object{dst: []byte{'{'}}
	o.always("type", "function_call_output")
	o.always("call_id", m.callID(i, r.CallID))
	o.name("output")
	o.dst = p.content(o.dst)
	return Fragment{Message: *m, Speaker: "tool", JSON: append(o.dst, '}'), Conversions: p.conversions}
}
