package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// codexCLI is Codex CLI.
type codexCLI struct{}

func (codexCLI) Name() string { return "codex" }

// codexConfig turns off everything but requests to the model. Otherwise Codex looks up plugins and apps at
// GitHub and OpenAI.
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

// Place writes the rollout. Codex only resumes a session under the provider that its session_meta names. So a
// rollout of the built-in provider is resumed under that one, with another address.
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

// codexOwn are texts that Codex adds as developer messages.
var codexOwn = ownTexts{
	{"<permissions instructions>", "permissions"},
	{"<skills_instructions>", "skills"},
	{"<tools>", "tools"},
	{"<model_switch>", "change of the model"},
	{"You are Codex, a coding agent based on ", "system prompt"},
}

// Own: Codex adds the texts of codexOwn, a user message about its environment, and reasoning items without
// content.
func (codexCLI) Own(t Turn) string {
	switch {
	case t.Kind == Thinking && t.Body == "" && t.Secret == "":
		return "empty reasoning"
	case t.Kind != Text:
	case t.Role == "system":
		return codexOwn.of(t.Body)
	case t.Role == "user" && strings.HasPrefix(t.Body, "<environment_context>"):
		return "environment"
	case t.Role == "user" && strings.HasPrefix(t.Body, "# AGENTS.md instructions"):
		return "AGENTS.md"
	}
	return ""
}

// Sends: the Responses API has no flag for failed results. Codex adds an output to a call without one, since
// the API requires it. The signature of reasoning is the id of its item, which Codex does not send. Provider
// items are compared by what they do.
func (codexCLI) Sends(t Turn) (Turn, bool) {
	t.Failed, t.Signature = false, ""
	if t.Interrupted {
		t.Interrupted, t.Body = false, "aborted"
	}
	if t.Kind == Call && t.Name == "local_shell" {
		t.Body = withoutNulls(t.Body)
	}
	if t.Kind == Other {
		var it responsesItem
		if json.Unmarshal([]byte(t.Body), &it) == nil {
			if turns, err := it.turns(); err == nil && len(turns) == 1 {
				return turns[0], true
			}
		}
	}
	return t, true
}
