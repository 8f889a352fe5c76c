package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// codexCLI is Codex CLI.
type codexCLI struct{}

func (codexCLI) Name() string   { return "codex" }
func (codexCLI) Format() string { return "openai-responses" }

// Interrupted is what Codex answers a call with that has no output.
func (codexCLI) Interrupted() string { return "aborted" }

// codexConfig turns off what is not for the model. Plugins and apps are looked up on
// GitHub and at OpenAI otherwise.
const codexConfig = `model = "gpt-5.5"
check_for_update_on_startup = false
%s

[analytics]
enabled = false

[feedback]
enabled = false

[otel]
exporter = "none"
metrics_exporter = "none"

[history]
persistence = "none"

[features]
plugins = false
remote_plugin = false
apps = false

[model_providers.fake]
name = "fake"
base_url = "%s/v1"
wire_api = "responses"
requires_openai_auth = false
request_max_retries = 0
stream_max_retries = 0
`

// Place writes the rollout. Codex does not resume a session under another provider than
// the one that its session_meta names, so that a rollout of the built-in one gets that,
// with another address.
func (codexCLI) Place(h Home, s Session) error {
	provider := `model_provider = "fake"`
	if bytes.Contains(firstLine(s.File), []byte(`"model_provider":"openai"`)) {
		provider = fmt.Sprintf("openai_base_url = %q", h.URL+"/v1")
	}
	name := "rollout-2026-01-02T03-04-05-" + s.ID + ".jsonl"
	return writeFiles(h.Dir, map[string][]byte{
		".codex/config.toml":                 []byte(fmt.Sprintf(codexConfig, provider, h.URL)),
		".codex/sessions/2026/01/02/" + name: s.File,
	})
}

func firstLine(file []byte) []byte {
	line, _, _ := bytes.Cut(file, []byte("\n"))
	return line
}

func (codexCLI) Command(h Home, s Session, prompt string) Command {
	return Command{
		Args: []string{
			filepath.Join(h.Installed, "node_modules", ".bin", "codex"),
			"exec", "resume", s.ID, "--skip-git-repo-check", prompt,
		},
		Env: []string{"CODEX_HOME=" + filepath.Join(h.Dir, ".codex"), "CODEX_API_KEY=sk-none"},
	}
}

// Own: Codex writes developer messages (its instructions, its skills, its tools), and one
// of the user that tells where it runs.
func (codexCLI) Own(t Turn) bool {
	return t.Kind == Text && (t.Role == "system" ||
		t.Role == "user" && strings.HasPrefix(t.Body, "<environment_context>"))
}

// responsesItem is an item of the input of OpenAI's Responses.
type responsesItem struct {
	Type             string          `json:"type"`
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content"`
	Summary          []responsesPart `json:"summary"`
	EncryptedContent string          `json:"encrypted_content"`
	CallID           string          `json:"call_id"`
	Namespace        string          `json:"namespace"`
	Name             string          `json:"name"`
	Arguments        string          `json:"arguments"`
	Input            string          `json:"input"`
	Output           json.RawMessage `json:"output"`
	Action           json.RawMessage `json:"action"`
}

type responsesPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL string `json:"image_url"`
}

// Turns takes them from a body with the member "input", or from an item.
func (codexCLI) Turns(body []byte) ([]Turn, error) {
	var request struct {
		Instructions string          `json:"instructions"`
		Input        []responsesItem `json:"input"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	if request.Input == nil {
		var item responsesItem
		if err := json.Unmarshal(body, &item); err != nil {
			return nil, err
		}
		request.Input = append(request.Input, item)
	}
	var turns []Turn
	if request.Instructions != "" {
		turns = append(turns, Turn{Role: "system", Kind: Text, Body: request.Instructions})
	}
	for _, it := range request.Input {
		more, err := it.turns()
		if err != nil {
			return nil, err
		}
		turns = append(turns, more...)
	}
	return turns, nil
}

func (it responsesItem) turns() ([]Turn, error) {
	switch it.Type {
	case "message", "":
		return it.message()
	case "reasoning":
		var texts []string
		for _, s := range it.Summary {
			texts = append(texts, s.Text)
		}
		return []Turn{{Role: "assistant", Kind: Thinking, Body: strings.Join(texts, "\n\n") + "|" + it.EncryptedContent}}, nil
	case "function_call":
		return []Turn{{Role: "assistant", Kind: Call, ID: it.CallID, Name: it.Namespace + it.Name, Body: it.Arguments}}, nil
	case "custom_tool_call":
		// contextd gives such a call as one with an object: docs/harness/codex.md.
		return []Turn{{Role: "assistant", Kind: Call, ID: it.CallID, Name: it.Name, Body: quoteInput(it.Input)}}, nil
	case "local_shell_call":
		return []Turn{{Role: "assistant", Kind: Call, ID: it.CallID, Name: "local_shell", Body: string(it.Action)}}, nil
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		return it.output()
	case "web_search_call", "compaction", "compaction_summary":
		return []Turn{{Role: "assistant", Kind: Other, Name: it.Type, Body: string(it.Action) + it.EncryptedContent}}, nil
	}
	return nil, fmt.Errorf("an item of the type %q", it.Type)
}

func (it responsesItem) message() ([]Turn, error) {
	role := it.Role
	if role == "developer" {
		role = "system"
	}
	parts, err := responsesParts(it.Content)
	if err != nil {
		return nil, err
	}
	var turns []Turn
	for _, p := range parts {
		switch p.Type {
		case "input_text", "output_text", "text":
			turns = append(turns, Turn{Role: role, Kind: Text, Body: p.Text})
		case "input_image":
			turns = append(turns, Turn{Role: role, Kind: Media, Body: p.ImageURL})
		default:
			return nil, fmt.Errorf("a part of the type %q", p.Type)
		}
	}
	return turns, nil
}

func (it responsesItem) output() ([]Turn, error) {
	parts, err := responsesParts(it.Output)
	if err != nil {
		return nil, err
	}
	var said []string
	for _, p := range parts {
		said = append(said, p.Text+p.ImageURL)
	}
	return []Turn{{Kind: Result, ID: it.CallID, Body: strings.Join(said, "\n")}}, nil
}

// responsesParts are those of a content that may be a string.
func responsesParts(raw json.RawMessage) ([]responsesPart, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []responsesPart{{Type: "text", Text: text}}, nil
	}
	var parts []responsesPart
	err := json.Unmarshal(raw, &parts)
	return parts, err
}

func quoteInput(text string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(object{"input": text}); err != nil {
		panic(err) // a string can be encoded
	}
	return strings.TrimSpace(out.String())
}

// writeFiles writes files below a folder.
func writeFiles(dir string, files map[string][]byte) error {
	for name, data := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
