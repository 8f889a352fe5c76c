package read

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

const ofGemini = "google"

// geminiResponse is the first candidate; a prompt that was blocked has none. Calls without an id, which Gemini's API
// leaves out in places, are given one: without it a result cannot name its call.
func geminiResponse(v value) (*contextdv1.Event, error) {
	candidates := v.get("candidates").elements()
	if len(candidates) == 0 && v.get("promptFeedback") == nil {
		return nil, errors.New("candidates: the response has none")
	}
	id := v.get("responseId").text()
	calls := 0
	blocks, err := geminiParts(first(v.get("candidates")).get("content"), func(string) (string, error) {
		calls++
		return fmt.Sprintf("%s_%d", cmp.Or(id, "call"), calls-1), nil
	})
	return assistant(v.get("modelVersion").text(), id, blocks), err
}

func geminiContent(v value) ([]*contextdv1.Event, error) {
	prompt := v.get("systemInstruction")
	if prompt != nil {
		v = prompt
	}
	if err := withParts(v); err != nil {
		return nil, err
	}
	blocks, err := geminiParts(v, func(name string) (string, error) {
		return "", fmt.Errorf("functionCall.id: the call of %q has none; give it one first", name)
	})
	switch role := v.get("role").text(); {
	case err != nil:
		return nil, err
	case prompt != nil:
		return []*contextdv1.Event{message(contextdv1.Role_ROLE_SYSTEM, blocks)}, nil
	case role == "model":
		return []*contextdv1.Event{assistant("", "", blocks)}, nil
	case role == "" || role == "user":
		return byResult(blocks), nil
	default:
		return nil, fmt.Errorf("role: %q is unknown", role)
	}
}

// withParts returns an error if a content's parts would be lost. Without them it has a role alone, or nothing.
func withParts(v value) error {
	members := v.members()
	rest := len(members)
	for _, name := range []string{"role", "parts"} {
		if _, ok := members[name]; ok {
			rest--
		}
	}
	parts := v.get("parts")
	if !parts.isList() && (parts != nil || rest > 0 || !v.isObject()) {
		return errors.New("parts: must be a list")
	}
	return ofObjects(parts, "parts")
}

func geminiParts(content value, newID func(name string) (string, error)) ([]*contextdv1.Block, error) {
	var out []*contextdv1.Block
	for i, part := range content.get("parts").elements() {
		blocks, err := geminiPart(part, newID)
		if err != nil {
			return nil, fmt.Errorf("parts[%d]: %w", i, err)
		}
		out = append(out, blocks...)
	}
	return out, nil
}

func geminiPart(v value, newID func(name string) (string, error)) ([]*contextdv1.Block, error) {
	kind, others := kindOf(v)
	signature := v.get("thoughtSignature")
	if v.get("thought").isTrue() && (kind == "" || kind == "text") && len(others) == 0 {
		t := &contextdv1.Thinking{Text: v.get("text").text(), Signature: signature.text()}
		if t.Text == "" && t.Signature == "" {
			return nil, nil
		}
		return []*contextdv1.Block{thinking(t)}, nil
	}
	// The signature of another part comes before it, as a block of its own.
	var out []*contextdv1.Block
	if signature.text() != "" {
		out = append(out, own(ofGemini, value(`{"thoughtSignature":`+string(signature)+`}`)))
	}
	switch part := v.get(kind); {
	case kind == "functionCall":
		name, id := part.get("name").text(), part.get("id").text()
		if id == "" {
			var err error
			if id, err = newID(name); err != nil {
				return nil, err
			}
		}
		return call(append(beside(ofGemini, v, others...), out...), id, name, writtenArguments(part.get("args"))), nil
	case kind == "functionResponse":
		r := geminiResult(part)
		r.Content = append(r.Content, beside(ofGemini, v, others...)...)
		return append(out, result(r)), nil
	case kind == "text" && len(others) == 0:
		return append(out, plain(part)...), nil
	case kind == "inlineData" && len(others) == 0 && !v.get("thought").isTrue():
		if m := geminiMedia(part); m != nil {
			return append(out, m), nil
		}
	}
	return []*contextdv1.Block{own(ofGemini, v)}, nil
}

// kindOf is the member of a part that says what it is, and the other members: beside a call or a result, metadata.
func kindOf(v value) (kind string, others []string) {
	for name, m := range v.members() {
		if name != "thought" && name != "thoughtSignature" && string(m) != "null" {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	at := slices.IndexFunc(others, func(name string) bool { return name == "functionCall" || name == "functionResponse" })
	if at < 0 && len(others) == 1 {
		at = 0
	}
	if at < 0 {
		return "", others
	}
	kind = others[at]
	return kind, slices.Delete(others, at, at+1)
}

// geminiMedia is what the log has as media: no texts, which Gemini alone takes as files.
func geminiMedia(v value) *contextdv1.Block {
	mime := v.get("mimeType").text()
	kind, _, typed := strings.Cut(strings.ToLower(mime), "/")
	if !typed || kind != "image" && kind != "audio" && kind != "video" && !strings.EqualFold(mime, "application/pdf") {
		return nil
	}
	// Google's SDKs write base64 of either alphabet.
	data, err := base64.StdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(v.get("data").text()))
	if err != nil || len(data) == 0 {
		return nil
	}
	return media(&contextdv1.Media{MimeType: mime, Data: data})
}

// geminiResult is what a function gave back: the value of output, result or error, where that is
// the only member, or else all of it; then its files.
func geminiResult(v value) *contextdv1.ToolResult {
	r := &contextdv1.ToolResult{CallId: v.get("id").text(), ToolName: v.get("name").text()}
	given := v.get("response")
	members, parts := given.members(), v.get("parts").elements()
	if len(members) == 1 {
		if failed := given.get("error"); failed != nil {
			given, r.IsError = failed, true
		} else if output := given.get("output"); output != nil {
			given = output
		} else if output := given.get("result"); output != nil {
			given = output
		}
	}
	if r.Content = plain(given); r.Content == nil && len(given) > 0 && given[0] != '"' && (len(members) > 0 || len(parts) == 0) {
		r.Content = []*contextdv1.Block{text(string(given))}
	}
	for _, part := range parts {
		block := own(ofGemini, part)
		if file := part.get("fileData"); file.get("fileUri").text() != "" {
			block = media(&contextdv1.Media{MimeType: file.get("mimeType").text(), Uri: file.get("fileUri").text()})
		} else if m := geminiMedia(part.get("inlineData")); m != nil {
			block = m
		}
		r.Content = append(r.Content, block)
	}
	return r
}
