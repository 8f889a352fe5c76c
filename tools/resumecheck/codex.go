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

// codexOwn are the messages that Codex writes as the developer's.
var codexOwn = ownTexts{
	{"<permissions instructions>", "permissions"},
	{"<skills_instructions>", "skills"},
	{"<tools>", "tools"},
	{"<model_switch>", "change of the model"},
	{"You are Codex, a coding agent based on ", "system prompt"},
}

// Own: Codex writes what codexOwn lists, says in the user's name where it runs, and has
// items for reasoning of which nothing is to be read.
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

// Sends: the Responses API has no flag for failures. A call that has no output gets one of
// Codex, as the API wants one. What signs reasoning there is the id of its item, which
// Codex does not send. Of an item of the provider's what it does is compared.
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
