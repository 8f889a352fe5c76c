package render

import (
	eventlog "github.com/contextd/contextd/internal/log"
)

// chatResult makes a tool's message, which may hold only text. Images and files of the result become parts of a user
// message after the results.
func chatResult(m *Message, i int, r eventlog.ToolResult) []Fragment {
	p, shown := chatParts(m, false), chatParts(m, true)
	for _, b := range r.Content {
		kind, ok := shown.move(i, r, b)
		if ok {
			p.say(i, "["+kind+": see below]")
			continue
		}
		p.add(i, b)
	}
	if p.count == 0 && r.IsError {
		p.say(i, "[error]")
	}
	o := object{dst: []byte{'{'}}
	o.always("role", chatTool)
	o.always("tool_call_id", m.callID(i, r.CallID))
	o.name("content")
	o.dst = p.content(o.dst)
	out := []Fragment{{Message: *m, Speaker: chatTool, JSON: append(o.dst, '}'), Conversions: p.conversions}}
	if shown.count > 0 {
		out = append(out, Fragment{Message: *m, Speaker: chatShown, JSON: shown.dst, Conversions: shown.conversions})
	}
	return once(out)
}

// move takes a part of a result that no tool message may hold, and returns what kind it is. A text before a result's
// first part names the result.
func (p *openAIParts) move(i int, r eventlog.ToolResult, block eventlog.Block) (kind string, ok bool) {
	var part []byte
	switch b := block.(type) {
	case eventlog.Media:
		if kind = mediaType(b); kind == "" {
			kind = "image"
		}
		part, ok = p.media(nil, b)
	case eventlog.ProviderBlock:
		kind = nativeKind(b)
		if b.Provider == providerOpenAI {
			part, ok = p.native(nil, b.JSON)
		}
	}
	if !ok {
		return "", false
	}
	if p.count == 0 {
		from := "tool result"
		if r.ToolName != "" {
			from = wireName(r.ToolName, longestOpenAIName, wordByte)
		}
		p.say(i, "[from "+from+"]")
	}
	p.took(append(p.next(), part...), "")
	p.note(i, Moved, kind)
	return kind, true
}

// chatResults puts consecutive results in order: the tools' messages, then one user message with the media that they
// show.
func chatResults(run []Fragment) []Encoded {
	out := make([]Encoded, 0, len(run))
	var shown []Fragment
	for i := range run {
		if run[i].Speaker == chatShown {
			shown = append(shown, run[i])
		} else {
			out = append(out, run[i].encoded())
		}
	}
	if len(shown) == 0 {
		return out
	}
	return append(out, joined(shown, func(string) (string, string) { return `{"role":"user","content":[`, "]}" }))
}
