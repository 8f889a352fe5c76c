package read

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

const ofOpenAI = "openai"

// chatResponse is the first choice.
func chatResponse(v value) (*contextdv1.Event, error) {
	choices := v.get("choices").elements()
	if len(choices) == 0 {
		return nil, errors.New("choices: the response has none")
	}
	blocks, err := chatAssistant(choices[0].get("message"))
	return assistant(v.get("model").text(), v.get("id").text(), blocks), err
}

func chatMessage(v value) ([]*contextdv1.Event, error) {
	role := v.get("role").text()
	if v.get("content") != nil || role != "assistant" {
		if err := withContent(v, "content"); err != nil {
			return nil, err
		}
	}
	content := openaiContent(v.get("content"))
	switch role {
	case "system", "developer":
		return []*contextdv1.Event{message(contextdv1.Role_ROLE_SYSTEM, content)}, nil
	case "user":
		return []*contextdv1.Event{message(contextdv1.Role_ROLE_USER, content)}, nil
	case "tool":
		return []*contextdv1.Event{message(contextdv1.Role_ROLE_TOOL, []*contextdv1.Block{result(&contextdv1.ToolResult{
			CallId: v.get("tool_call_id").text(), ToolName: v.get("name").text(), Content: content,
		})})}, nil
	case "assistant":
		blocks, err := chatAssistant(v)
		if err == nil && len(blocks) == 0 {
			err = withContent(v, "content")
		}
		return []*contextdv1.Event{assistant("", "", blocks)}, err
	default:
		return nil, fmt.Errorf("role: %q is unknown", role)
	}
}

func chatAssistant(v value) ([]*contextdv1.Block, error) {
	if v.get("function_call") != nil {
		return nil, errors.New("function_call: is not read; give the call in tool_calls")
	}
	out := append(chatReasoning(v), openaiContent(v.get("content"))...)
	if images := v.get("images"); images.isList() { // of OpenRouter's
		out = append(out, openaiContent(images)...)
	}
	out = append(out, chatAudio(v.get("audio"))...)
	if refusal := v.get("refusal"); refusal.text() != "" {
		out = append(out, own(ofOpenAI, value(`{"type":"refusal","refusal":`+string(refusal)+`}`)))
	}
	for _, c := range v.get("tool_calls").elements() {
		id, of := c.get("id").text(), c.get("function")
		arguments := writtenArguments(of.get("arguments"))
		if !of.isObject() {
			of = c.get("custom")
			arguments = freeInput(of.get("input"))
		}
		out = append(out, call(besideChatCall(c), id, of.get("name").text(), arguments)...)
	}
	return out, nil
}

// chatAudio is what was said in a sound; without a transcript, the sound or its id.
func chatAudio(v value) []*contextdv1.Block {
	if said := plain(v.get("transcript")); said != nil || !v.isObject() {
		return said
	}
	return []*contextdv1.Block{own(ofOpenAI, value(`{"type":"audio","audio":`+string(v)+`}`))}
}

// freeInput are the arguments of a call whose input is a text.
func freeInput(v value) []byte {
	if v == nil {
		v = value(`""`)
	}
	return []byte(`{"input":` + string(v) + `}`)
}

// openaiContent is a string or a list of parts. Empty texts are left out.
func openaiContent(v value) []*contextdv1.Block {
	if !v.isList() {
		return plain(v)
	}
	var out []*contextdv1.Block
	for _, item := range v.elements() {
		if b := openaiPart(item); b.GetText() == nil || b.GetText().GetText() != "" {
			out = append(out, b)
		}
	}
	return out
}

func openaiPart(v value) *contextdv1.Block {
	switch v.get("type").text() {
	case "text", "input_text", "output_text":
		if annotations := v.get("annotations").elements(); len(annotations) == 0 {
			return text(v.get("text").text())
		}
	case "image_url", "input_image":
		image := v.get("image_url")
		url, detail := image.text()+image.get("url").text(), v.get("detail").text()+image.get("detail").text()
		if m := imageAt(url); m != nil && (detail == "" || detail == "auto") {
			return media(m)
		}
	}
	return own(ofOpenAI, v)
}

func imageAt(url string) *contextdv1.Media {
	inline, ok := strings.CutPrefix(url, "data:")
	if !ok {
		if url == "" {
			return nil
		}
		return &contextdv1.Media{Uri: url}
	}
	mime, encoded, _ := strings.Cut(inline, ";base64,")
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(data) == 0 {
		return nil
	}
	return &contextdv1.Media{MimeType: mime, Data: data}
}

// openaiResponse is all output of a response, which is one message of the model.
func openaiResponse(v value) (*contextdv1.Event, error) {
	var blocks []*contextdv1.Block
	for _, item := range v.get("output").elements() {
		blocks = append(blocks, modelItem(item)...)
	}
	return assistant(v.get("model").text(), v.get("id").text(), blocks), nil
}

func responsesItem(v value) ([]*contextdv1.Event, error) {
	switch kind := v.get("type").text(); {
	case runtimeCalls[strings.TrimSuffix(kind, "_output")].name != "" && strings.HasSuffix(kind, "_output"):
		return []*contextdv1.Event{message(contextdv1.Role_ROLE_TOOL, []*contextdv1.Block{runtimeResult(v)})}, nil
	case kind == "function_call_output", kind == "custom_tool_call_output":
		if err := withContent(v, "output"); err != nil {
			return nil, err
		}
		return []*contextdv1.Event{message(contextdv1.Role_ROLE_TOOL, []*contextdv1.Block{result(&contextdv1.ToolResult{
			CallId: v.get("call_id").text(), Content: openaiContent(v.get("output")),
		})})}, nil
	case kind != "" && kind != "message":
		return []*contextdv1.Event{assistant("", "", modelItem(v))}, nil
	}
	if err := withContent(v, "content"); err != nil {
		return nil, err
	}
	content := openaiContent(v.get("content"))
	switch role := v.get("role").text(); role {
	case "assistant":
		return []*contextdv1.Event{assistant("", "", modelItem(v))}, nil
	case "system", "developer":
		return []*contextdv1.Event{message(contextdv1.Role_ROLE_SYSTEM, content)}, nil
	case "user":
		return []*contextdv1.Event{message(contextdv1.Role_ROLE_USER, content)}, nil
	default:
		return nil, fmt.Errorf("role: %q is unknown", role)
	}
}

// modelItem are the blocks of an item that the model wrote.
func modelItem(v value) []*contextdv1.Block {
	kind := v.get("type").text()
	if kind == "" && (v.get("role") != nil || v.get("content") != nil) {
		kind = "message" // whose type may be left out
	}
	switch kind {
	case "message":
		var out []*contextdv1.Block
		for _, b := range openaiContent(v.get("content")) {
			out = append(append(out, beside(ofOpenAI, v, "phase")...), b)
		}
		return out
	case "function_call":
		return call(besideCall(v), v.get("call_id").text(), v.get("name").text(), writtenArguments(v.get("arguments")))
	case "custom_tool_call":
		return call(besideCall(v), v.get("call_id").text(), v.get("name").text(), freeInput(v.get("input")))
	case "reasoning":
		return reasoning(v)
	default:
		if tool, ok := runtimeCalls[kind]; ok && !strings.HasPrefix(v.get("environment").get("type").text(), "container") {
			return call(nil, callOf(v), tool.name, tool.input(v))
		}
		return []*contextdv1.Block{own(ofOpenAI, v)}
	}
}

func besideCall(v value) []*contextdv1.Block {
	return beside(ofOpenAI, v, "namespace", "caller", "async")
}

// runtimeTool is a tool of OpenAI's that the runtime runs: its name, and the members of a call of which one has the input.
type runtimeTool struct {
	name    string
	members []string
}

// runtimeCalls are the items with calls of these tools. What answers one is the same with _output. A shell in a container
// is OpenAI's to run.
var runtimeCalls = map[string]runtimeTool{
	"local_shell_call": {"local_shell", []string{"action"}},
	"shell_call":       {"shell", []string{"action"}},
	"apply_patch_call": {"apply_patch", []string{"operation"}},
	"computer_call":    {"computer", []string{"action", "actions"}},
}

// input is the object with the call's input.
func (t runtimeTool) input(v value) []byte {
	for _, name := range t.members {
		switch given := v.get(name); {
		case given.isObject():
			return given
		case given != nil:
			return []byte(`{"` + name + `":` + string(given) + `}`)
		}
	}
	return nil
}

// callOf is the id of a call, which old items have as their own.
func callOf(v value) string {
	if id := v.get("call_id").text(); id != "" {
		return id
	}
	return v.get("id").text()
}

// runtimeResult is the result of such a call: a text, a screenshot, or the JSON that it is.
func runtimeResult(v value) *contextdv1.Block {
	output := v.get("output")
	content := plain(output)
	if m := imageAt(output.get("image_url").text()); m != nil {
		content = []*contextdv1.Block{media(m)}
	} else if output.isObject() || output.isList() {
		content = []*contextdv1.Block{text(string(output))}
	}
	return result(&contextdv1.ToolResult{CallId: callOf(v), Content: content, IsError: v.get("status").text() == "failed"})
}

// reasoning has a seal, which holds for the item as it came: id and texts. Servers of open models give none, but the
// reasoning itself as content, which is what they want back. With neither nothing of it is left here: the provider keeps
// it under the id, or nobody does.
func reasoning(v value) []*contextdv1.Block {
	t := &contextdv1.Thinking{EncryptedContent: v.get("encrypted_content").text()}
	texts, own := textsOf(v.get("summary")), textsOf(v.get("content"))
	if len(texts) == 0 || t.EncryptedContent == "" && strings.TrimSpace(strings.Join(own, "")) != "" {
		texts = own
	}
	t.Text = strings.Join(texts, "\n\n")
	if t.EncryptedContent == "" {
		if strings.TrimSpace(t.Text) == "" {
			return nil
		}
		return []*contextdv1.Block{thinking(t)}
	}
	if t.Signature = v.get("id").text(); len(texts) > 1 || v.get("content") != nil || v.get("status") != nil {
		t.Signature = asGiven(v)
	}
	return []*contextdv1.Block{thinking(t)}
}

func textsOf(list value) []string {
	var texts []string
	for _, part := range list.elements() {
		texts = append(texts, part.get("text").text())
	}
	return texts
}

// asGiven is an item of reasoning with the bytes of its members.
func asGiven(v value) string {
	var members []string
	for _, name := range []string{"type", "id", "summary", "content", "encrypted_content", "status"} {
		if given := v.get(name); given != nil {
			members = append(members, `"`+name+`":`+string(given))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}
