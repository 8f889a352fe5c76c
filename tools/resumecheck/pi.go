package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// piCLI is pi. How it sends thinking and ids of calls depends on whether the session is resumed with the
// model that wrote them; Place chooses the model.
type piCLI struct{ model *piModel }

// piModel is a model as pi names it.
type piModel struct {
	Provider string `json:"provider"`
	API      string `json:"api"`
	ID       string `json:"model"`
	// own is set where this model wrote all replies of the session.
	own bool
}

const (
	piMessages  = "anthropic-messages"
	piResponses = "openai-responses"
)

func (piCLI) Name() string { return "pi" }

const (
	piModels = `{"providers": {%q: {"baseUrl": %q, "api": %q, "apiKey": "none", "models": [
	{"id": %q, "reasoning": true, "input": ["text", "image"], "contextWindow": 100000000, "maxTokens": 1000}]}}}`
	piSettings = `{"compaction": {"enabled": false}, "retry": {"enabled": false}}`
)

// Place writes the session with the home's working directory, since that must exist.
func (c piCLI) Place(h Home, s Session) error {
	*c.model = piModelOf(s.File)
	url := h.URL
	if c.model.API == piResponses {
		url += "/v1"
	}
	file, err := piMoved(s.File, h.Work)
	if err != nil {
		return err
	}
	return writeFiles(h.Dir, map[string][]byte{
		".pi/agent/models.json":   fmt.Appendf(nil, piModels, c.model.Provider, url, c.model.API, c.model.ID),
		".pi/agent/settings.json": []byte(piSettings),
		"session.jsonl":           file,
	})
}

// piMoved is the session with another working directory.
func piMoved(file []byte, directory string) ([]byte, error) {
	var header map[string]json.RawMessage
	first := firstLine(file)
	if err := json.Unmarshal(first, &header); err != nil {
		return nil, fmt.Errorf("the session's header: %w", err)
	}
	var err error
	if header["cwd"], err = json.Marshal(directory); err != nil {
		return nil, err
	}
	moved, err := json.Marshal(header)
	return append(moved, file[len(first):]...), err
}

// piModelOf is the model that wrote all replies that pi sends, if Turns can parse its API; otherwise a model
// that wrote none.
func piModelOf(file []byte) piModel {
	model := piModel{}
	for line := range bytes.Lines(file) {
		var entry struct {
			Message struct {
				piModel
				Role       string            `json:"role"`
				Content    []json.RawMessage `json:"content"`
				StopReason string            `json:"stopReason"`
			} `json:"message"`
		}
		if json.Unmarshal(line, &entry) != nil {
			continue // its content is not a list
		}
		m := entry.Message
		if m.Role != "assistant" || len(m.Content) == 0 || m.StopReason == "aborted" || m.StopReason == "error" {
			continue
		}
		if model.ID != "" && model != m.piModel {
			model.API = ""
			break
		}
		model = m.piModel
	}
	if model.ID == "" || model.API != piMessages && model.API != piResponses {
		return piModel{Provider: "fake", API: piMessages, ID: "fake"}
	}
	model.own = true
	return model
}

func (c piCLI) Command(h Home, _ Session, prompt string) Command {
	return Command{
		Args: []string{
			filepath.Join(h.Installed, "node_modules", ".bin", "pi"), "--session", filepath.Join(h.Dir, "session.jsonl"),
			"--provider", c.model.Provider, "--model", c.model.ID,
			"--no-extensions", "--no-skills", "--no-prompt-templates", "--no-themes", "--no-context-files", "-p", prompt,
		},
		Env: []string{"PI_OFFLINE=1", "PI_TELEMETRY=0"},
	}
}

// orphan is the role of results without a call in the request.
const orphan = "orphan"

// Turns parses a request, and marks results without a call as orphans.
func (c piCLI) Turns(body []byte) (turns []Turn, err error) {
	if c.model.API == piResponses {
		turns, err = codexCLI{}.Turns(body)
	} else {
		turns, err = claudeCLI{}.Turns(body)
	}
	called := map[string]bool{}
	for i := range turns {
		turns[i].Seam = false
		switch t := &turns[i]; {
		case t.Kind == Call:
			t.Body = sameJSON(t.Body)
			called[t.ID] = true
		case t.Kind == Result && !called[t.ID]:
			t.Role = orphan
		}
	}
	return turns, err
}

// Own: pi sends results without a call; contextd omits them, since providers refuse them. With the Responses
// API, the system prompt is among the messages, and empty texts are sent.
func (piCLI) Own(t Turn) string {
	switch {
	case t.Role == orphan:
		return "result without a call"
	case t.Kind == Text && t.Role == "system":
		return "system prompt"
	case t.Kind == Text && t.Role == "assistant" && t.Body == "":
		return "empty text"
	}
	return ""
}

var notInCallID = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// Sends: pi has its own system prompt, and cannot represent other providers' blocks. It adds results to open
// calls, and omits texts of only whitespace.
func (c piCLI) Sends(t Turn) (Turn, bool) {
	if t.Interrupted {
		t.Interrupted, t.Body = false, "No result provided"
	}
	switch t.Kind {
	case Thinking:
		return c.thinking(t)
	case Call, Result:
		if t.Kind == Call {
			t.Body = sameJSON(objectOf(t.Body))
		}
		c.call(&t)
	}
	blank := t.Kind == Text && strings.TrimSpace(t.Body) == ""
	return t, t.Role != "system" && t.Kind != Other && !blank
}

// call: with OpenAI, the id of a call is followed by the id of its item, and there is no flag for failed
// results. With Anthropic, ids by other models are replaced by valid ones. An image alone is sent with a text
// to Anthropic, and not at all to OpenAI.
func (c piCLI) call(t *Turn) {
	switch {
	case c.model.API == piResponses:
		t.ID, _, _ = strings.Cut(t.ID, "|")
		t.Failed = false
		if t.Kind == Result && t.Body == "" {
			t.Body = piImage
		}
		return
	case !c.model.own:
		t.ID = notInCallID.ReplaceAllString(t.ID, "_")
		t.ID = t.ID[:min(len(t.ID), 64)]
	}
	if t.Kind == Result && strings.HasPrefix(t.Body, "data:") {
		t.Body = piImage + "\n" + t.Body
	}
}

const piImage = "(see attached image)"

// thinking: that of another model is sent as text if it is readable. Thinking without a seal is sent as text
// to Anthropic, and not at all to OpenAI. OpenAI's signature of reasoning is the id of its item.
func (c piCLI) thinking(t Turn) (Turn, bool) {
	text := Turn{Role: t.Role, Kind: Text, Body: t.Body}
	blank := strings.TrimSpace(t.Body) == ""
	switch {
	case !c.model.own:
		return text, !blank
	case c.model.API == piResponses:
		t.Signature = ""
		return t, t.Secret != ""
	case t.Secret != "":
		return Turn{Role: t.Role, Kind: Thinking, Secret: t.Secret}, true
	case t.Signature == "":
		return text, !blank
	}
	return t, !blank
}
