package render

import (
	"encoding/base64"
	"fmt"
	"slices"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// openAIChat is OpenAI's Chat Completions: each line is one of the request's messages.
var openAIChat = Format{
	Name: "openai_chat", Fragments: chatFragments, Join: chatJoin, Framing: openAIFraming,
	Reasoning: chatReasoning, ByModel: true, PromptCacheKey: true, Tools: openAIChatTools, limits: &chatLimits,
}

func chatReasoning(t eventlog.Thinking, _ string, returned bool) (text, seal bool) {
	if returned {
		return t.Text != "", false
	}
	sent := provider.OfBlock(t, "") == provider.Host
	return sent, sent
}

// Speakers of fragments that Join moves or merges.
const (
	chatTool = "tool"
	// chatMore are further calls of the assistant's message before it.
	chatMore = "more"
	// chatShown are parts of a user message that comes after the results they belong
	// to.
	chatShown = "shown"
)

// mostChatCalls is how many calls a message may have. Models make more, but the API refuses such a message when it
// comes back.
const mostChatCalls = 128

func chatFragments(m Message) []Fragment { return chatLimits.noted(&m, chatSaid(m)) }

func chatSaid(m Message) []Fragment {
	switch m.Role {
	case eventlog.RoleAssistant:
		return chatAssistant(m)
	case eventlog.RoleSystem:
		p := chatParts(&m, false)
		for i, b := range m.Blocks {
			p.add(i, b)
		}
		return chatMessage(m, p, "system")
	}
	var out []Fragment
	p := chatParts(&m, true)
	for i, b := range m.Blocks {
		if r, ok := b.(eventlog.ToolResult); ok {
			out = append(out, chatResult(&m, i, r)...)
			continue
		}
		p.add(i, b)
	}
	return once(append(out, chatMessage(m, p, "user")...))
}

// chatParts gathers a content; media are shown to the model in the user's alone.
func chatParts(m *Message, media bool) *openAIParts {
	p := &openAIParts{message: m, text: "text"}
	if media {
		p.media, p.native = chatMedia, chatPart
	}
	return p
}

// chatMessage is a message with the parts; none without parts. Elsewhere holds the parts alone.
func chatMessage(m Message, p *openAIParts, role string) []Fragment {
	if p.count == 0 {
		return nothing(m, p.conversions)
	}
	o := object{dst: make([]byte, 1, len(p.dst)+64)}
	o.dst[0] = '{'
	o.always("role", role)
	o.name("content")
	o.dst = append(p.content(o.dst), '}')
	return []Fragment{{Message: m, Speaker: role, JSON: o.dst, Elsewhere: p.dst, Conversions: p.conversions}}
}

// chatMedia appends the part of a medium.
func chatMedia(dst []byte, b eventlog.Media) ([]byte, bool) {
	if url, ok := openAIImage(nil, b); ok {
		dst = append(append(dst, `{"type":"image_url","image_url":{"url":`...), url...)
		return append(dst, '}', '}'), true
	}
	if b.Data == "" {
		return dst, false
	}
	switch kind := mediaType(b); kind {
	case "audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave":
		return chatAudio(dst, b.Data, "wav"), true
	case "audio/mpeg", "audio/mp3":
		return chatAudio(dst, b.Data, "mp3"), true
	case "application/pdf":
		dst = append(dst, `{"type":"file","file":{"filename":"document.pdf","file_data":`...)
		return append(appendDataURL(dst, kind, b.Data), '}', '}'), true
	}
	return dst, false
}

func chatAudio(dst []byte, data, format string) []byte {
	dst = append(dst, `{"type":"input_audio","input_audio":{"data":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, []byte(data))
	return append(append(append(dst, `","format":"`...), format...), `"}}`...)
}

// chatAssistant is the message of a model: what it said, and its calls.
func chatAssistant(m Message) []Fragment {
	p := chatParts(&m, false)
	var refusal string
	var calls [][]byte // as many as one message may have
	count, of := 0, make([]int, len(m.Blocks))
	seal := sealOf(&m)
	var held beside
	for i, block := range m.Blocks {
		if held.hold(i, block, p.note) {
			continue
		}
		switch b := block.(type) {
		case eventlog.ToolCall:
			if count%mostChatCalls == 0 {
				calls = append(calls, nil)
			}
			count++
			of[i] = len(calls) - 1
			last := &calls[len(calls)-1]
			if len(*last) > 0 {
				*last = append(*last, ',')
			}
			*last = chatCall(*last, p, i, b, &held)
		case eventlog.Thinking:
			if !isReturned(&m, b) && i != seal.block {
				p.note(i, LeftOut, reasoningOf(b, m.Model))
			}
		case eventlog.ToolResult:
			p.note(i, LeftOut, "tool result of the assistant")
		case eventlog.ProviderBlock:
			if text, ok := openAIRefusal(b.Provider, b.JSON); ok {
				if refusal != "" {
					refusal += "\n"
				}
				refusal += text
				continue
			}
			p.add(i, b)
		default:
			p.add(i, b)
		}
	}
	held.leave(p.note)
	if p.count == 0 && len(calls) == 0 && refusal == "" {
		if seal.block >= 0 {
			p.note(seal.block, LeftOut, "reasoning that nothing follows")
		}
		return nothing(m, p.conversions)
	}
	var first []byte
	if len(calls) > 0 {
		first = calls[0]
	}
	o := object{dst: make([]byte, 1, len(p.dst)+len(first)+len(seal.members)+96)}
	o.dst[0] = '{'
	o.always("role", "assistant")
	o.name("content")
	if p.count == 0 {
		o.dst = append(o.dst, "null"...)
	} else {
		o.dst = p.content(o.dst)
	}
	if m.ReturnReasoning {
		o.always("reasoning_content", returned(&m))
	}
	o.dst = append(o.dst, seal.members...)
	o.str("refusal", refusal)
	if len(first) > 0 {
		o.name("tool_calls")
		o.dst = append(append(append(o.dst, '['), first...), ']')
	}
	out := []Fragment{{Message: m, Speaker: "assistant", JSON: append(o.dst, '}'), Conversions: p.conversions}}
	for i := 1; i < len(calls); i++ {
		o := object{dst: []byte(`{"role":"assistant","content":null`), members: 2}
		if m.ReturnReasoning {
			o.always("reasoning_content", noReasoning)
		}
		o.name("tool_calls")
		json := append(append(o.dst, '['), calls[i]...)
		out = append(out, Fragment{Message: m, Speaker: chatMore, JSON: append(json, ']', '}')})
	}
	return divided(m, out, of)
}

// chatCall appends a call. Its arguments are the string that the model wrote.
func chatCall(dst []byte, p *openAIParts, i int, b eventlog.ToolCall, held *beside) []byte {
	id, name := openAICall(p, i, b)
	o := object{dst: append(dst, '{')}
	o.always("id", id)
	o.always("type", "function")
	o.name("function")
	f := object{dst: append(o.dst, '{')}
	f.always("name", name)
	f.always("arguments", p.arguments(i, b.Arguments))
	f.dst = append(f.dst, '}')
	o.dst = f.dst
	for _, name := range []string{"extra_content", "provider_specific_fields"} {
		held.take(&o, providerOpenAI, name, func(value string) bool { return chatCallMember(p.message, value) })
	}
	return append(o.dst, '}')
}

// openAICall gives a call's id and name as OpenAI takes them.
func openAICall(p *openAIParts, i int, b eventlog.ToolCall) (id, name string) {
	id, name = p.message.callID(i, b.CallID), wireName(b.Name, longestOpenAIName, wordByte)
	if id != b.CallID {
		p.note(i, Renamed, "call id "+brief(b.CallID))
	}
	if name != b.Name {
		p.note(i, Renamed, "tool name "+brief(b.Name))
	}
	return id, name
}

// longestOpenAIArguments is how many characters of arguments OpenAI accepts in a request. Its models may write more.
const longestOpenAIArguments = 1 << 20

// arguments is the string of arguments of call i. For none it is the empty object, as OpenAI's models write it.
// Arguments that are too long are replaced by a description.
func (p *openAIParts) arguments(i int, arguments string) string {
	switch {
	case arguments == "":
		return "{}"
	case len(arguments) <= longestOpenAIArguments || utf8.RuneCountInString(arguments) <= longestOpenAIArguments:
		return arguments
	}
	what := fmt.Sprintf("arguments, %d bytes", len(arguments))
	p.note(i, Described, what)
	described := appendString([]byte(`{"`+eventlog.WrappedArguments+`":`), description(what, p.message.place(i), p.message.Recall))
	return string(append(described, '}'))
}

// chatJoin merges the leading system messages. It moves what results show after the last of consecutive results,
// because nothing may come between a call and its result.
func chatJoin(fragments []Fragment) []Encoded {
	fragments = apart(chatLimits.within(settled(fragments), chatFragments))
	out := make([]Encoded, 0, len(fragments))
	if n := openAISystem(fragments); n > 0 {
		out = append(out, openAIPrompt(fragments[:n], `{"role":"system","content":[`))
		fragments = fragments[n:]
	}
	for len(fragments) > 0 {
		n := 1
		if fragments[0].Speaker == chatTool || fragments[0].Speaker == chatShown {
			for n < len(fragments) && (fragments[n].Speaker == chatTool || fragments[n].Speaker == chatShown) {
				n++
			}
			out = append(out, chatResults(fragments[:n])...)
		} else {
			out = append(out, fragments[0].encoded())
		}
		fragments = fragments[n:]
	}
	return out
}

// apart moves a message's further calls after the results of its earlier calls.
func apart(fragments []Fragment) []Fragment {
	if !slices.ContainsFunc(fragments, func(f Fragment) bool { return f.Speaker == chatMore }) {
		return fragments
	}
	out := make([]Fragment, 0, len(fragments))
	var more []Fragment
	results := 0
	for _, f := range fragments {
		switch f.Speaker {
		case chatMore:
			more = append(more, f)
			continue
		case chatTool:
			if results == mostChatCalls && len(more) > 0 {
				out, more, results = append(out, more[0]), more[1:], 0
			}
			results++
		case chatShown:
		default:
			out, more, results = append(out, more...), nil, 0
		}
		out = append(out, f)
	}
	return append(out, more...)
}

// openAIPrompt is the one system message that the leading ones make.
func openAIPrompt(run []Fragment, head string) Encoded {
	if len(run) == 1 {
		out := run[0].encoded()
		out.System = true
		return out
	}
	parts := make([]Fragment, len(run))
	for i := range run {
		parts[i] = run[i]
		parts[i].JSON = run[i].Elsewhere
	}
	out := joined(parts, func(string) (string, string) { return head, "]}" })
	out.System = true
	return out
}
