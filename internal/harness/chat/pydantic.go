package chat

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// pydanticMessage has the members of a request or a response of Pydantic AI beside its parts.
type pydanticMessage struct {
	Timestamp jsontext.Value `json:"timestamp"`
	// Instructions are the system prompt of this request alone.
	Instructions transcript.Word `json:"instructions"`
	Model        transcript.Word `json:"model_name"`
	Usage        transcript.Maybe[struct {
		Input     transcript.Count `json:"input_tokens"` // with the cached part
		Output    transcript.Count `json:"output_tokens"`
		CacheRead transcript.Count `json:"cache_read_tokens"`
		OldInput  transcript.Count `json:"request_tokens"` // in older versions
		OldOutput transcript.Count `json:"response_tokens"`
	}] `json:"usage"`
}

// pydanticPart is a part of a request or a response.
type pydanticPart struct {
	Kind      transcript.Word `json:"part_kind"`
	Content   jsontext.Value  `json:"content"`
	Tool      transcript.Word `json:"tool_name"`
	CallID    transcript.Word `json:"tool_call_id"`
	Args      jsontext.Value  `json:"args"`
	Outcome   transcript.Word `json:"outcome"`
	ID        transcript.Word `json:"id"`
	Signature transcript.Word `json:"signature"`
	Provider  transcript.Word `json:"provider_name"`
	Timestamp jsontext.Value  `json:"timestamp"`
}

// pydantic returns the messages of which a request or a response consists.
func (c *conversation) pydantic(m *folded) (all []jsontext.Value) {
	if text := string(m.Instructions); text != "" && text != c.instructions {
		c.instructions = text
		all = append(all, transcript.Object("role", "system", "content", text, "timestamp", orNull(m.Timestamp)))
	}
	var reply, calls []jsontext.Value
	for _, raw := range m.Parts.Value {
		var p pydanticPart
		if transcript.Decode(raw, &p) != nil || p.Kind == "" {
			return nil
		}
		request := func(role string, content jsontext.Value, more ...any) {
			at := orNull(either(p.Timestamp, m.Timestamp))
			all = append(all, transcript.Object(append([]any{"role", role, "content", content, "timestamp", at}, more...)...))
		}
		switch p.Kind {
		case "system-prompt":
			request("system", p.Content)
		case "user-prompt":
			request("user", p.prompt())
		case "tool-return":
			request("user", transcript.List(result(string(p.CallID), p.Content, nil, p.Outcome == "failed" || p.Outcome == "denied")))
		case "retry-prompt":
			if said := p.text(); p.Tool == "" {
				request("user", said, "synthetic_reason", string(p.Kind))
			} else {
				request("user", transcript.List(result(string(p.CallID), said, nil, true)))
			}
		case "text":
			reply = append(reply, transcript.Object("type", "text", "text", p.Content))
		case "thinking":
			reply = append(reply, p.thought())
		case "tool-call":
			calls = append(calls, transcript.Object("id", string(p.CallID), "name", string(p.Tool), "arguments", orEmpty(p.Args)))
		default: // of a tool that the provider ran, or a file that the model made
			reply = append(reply, raw)
		}
	}
	if len(reply)+len(calls) == 0 {
		return all
	}
	u := m.Usage.Value
	return append(all, transcript.Object("role", "assistant", "content", transcript.List(reply...), "tool_calls", transcript.List(calls...),
		"model", string(m.Model), "timestamp", orNull(m.Timestamp), "usage", transcript.Object("prompt_tokens", max(u.Input, u.OldInput),
			"completion_tokens", max(u.Output, u.OldOutput), "prompt_cache_hit_tokens", u.CacheRead)))
}

// text is a part's content as a text: other JSON is what was wrong with the arguments of a call.
func (p *pydanticPart) text() jsontext.Value {
	if _, ok := transcript.Text(p.Content); ok {
		return p.Content
	}
	return transcript.JSON(transcript.Compact(p.Content))
}

// prompt is the content of a user's prompt: a text, or a list of texts and media.
func (p *pydanticPart) prompt() jsontext.Value {
	var items []jsontext.Value
	if transcript.Decode(p.Content, &items) != nil {
		return p.Content
	}
	for i, raw := range items {
		var media struct {
			URL  transcript.Word `json:"url"`
			Data transcript.Word `json:"data"`
			MIME transcript.Word `json:"media_type"`
		}
		switch {
		case raw[0] == '"':
			items[i] = transcript.Object("type", "text", "text", raw)
		case transcript.Decode(raw, &media) != nil:
		case media.Data != "":
			items[i] = transcript.Object("type", "image_url", "image_url", "data:"+string(media.MIME)+";base64,"+string(media.Data))
		case media.URL != "":
			items[i] = transcript.Object("type", "image_url", "image_url", string(media.URL))
		}
	}
	return transcript.List(items...)
}

// thought is a thinking in a provider's form.
func (p *pydanticPart) thought() jsontext.Value {
	text, _ := transcript.Text(p.Content)
	signature := string(p.Signature)
	switch {
	case p.Provider == "openai":
		return sealedThought(text, "", "", signature, string(p.ID))
	case p.ID == "redacted_thinking":
		return sealedThought(text, "", signature, "", "")
	}
	return sealedThought(text, signature, "", "", "")
}
