package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/opencode"
	eventlog "github.com/contextd/contextd/internal/log"
)

// opencodeCLI is OpenCode. How it sends thinking depends on whether the session is resumed with the model
// that wrote it; Place chooses the model.
type opencodeCLI struct {
	model    *opencodeModel
	thoughts map[string]bool
}

// opencodeModel is a model as OpenCode names it.
type opencodeModel struct {
	Provider string `json:"providerID"`
	ID       string `json:"modelID"`
	// own is set where this model wrote all replies of the session.
	own bool
}

// opencodeMessage has the fields of an exported message that are needed here.
type opencodeMessage struct {
	Info struct {
		opencodeModel
		Role    string          `json:"role"`
		Summary json.RawMessage `json:"summary"`
	} `json:"info"`
	Parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"parts"`
}

// opencodeThoughts are the thoughts of models that wrote summaries. Another model gets them as a text before
// the summary.
func opencodeThoughts(messages []opencodeMessage) map[string]bool {
	thoughts := map[string]bool{}
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Type == "reasoning" && string(m.Info.Summary) == "true" {
				thoughts[p.Text] = true
			}
		}
	}
	return thoughts
}

func (opencodeCLI) Name() string { return "opencode" }

// opencodeConfig names the model. Its provider is one of the packages that OpenCode includes.
const opencodeConfig = `{"autoupdate": false, "share": "disabled", "snapshot": false,
"compaction": {"auto": false, "prune": false}, "enabled_providers": [%[1]q],
"model": %[2]q, "small_model": %[2]q, "provider": {%[1]q: {"npm": %[3]q, "options": {"baseURL": %[4]q, "apiKey": "none"},
"models": {%[5]q: {"reasoning": true, "tool_call": true, "attachment": true, "temperature": false,
"modalities": {"input": ["text", "image", "pdf"], "output": ["text"]}, "limit": {"context": 100000000, "output": 1000}}}}}}`

// opencodeInstalled makes OpenCode believe that its configuration's packages are installed. No setting keeps
// it from downloading its plugin package, although there are no plugins.
const opencodeInstalled = `{"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}`

// Place writes the export into the home; Prepare imports it.
func (c opencodeCLI) Place(h Home, s Session) error {
	var session struct {
		Messages []opencodeMessage `json:"messages"`
	}
	if err := json.Unmarshal(s.File, &session); err != nil {
		return fmt.Errorf("the session: %w", err)
	}
	model := opencodeModelOf(session.Messages)
	clear(c.thoughts)
	maps.Copy(c.thoughts, opencodeThoughts(session.Messages))
	*c.model = model
	npm := "@ai-sdk/anthropic"
	if model.Provider == "openai" {
		npm = "@ai-sdk/openai"
	}
	config := fmt.Appendf(nil, opencodeConfig, model.Provider, model.name(), npm, h.URL+"/v1", model.ID)
	return writeFiles(h.Dir, map[string][]byte{
		".config/opencode/opencode.json":     config,
		".config/opencode/node_modules/none": nil,
		".config/opencode/package-lock.json": []byte(opencodeInstalled),
		"session.json":                       s.File,
	})
}

func (m opencodeModel) name() string { return m.Provider + "/" + m.ID }

// opencodeModelOf is the model that wrote all replies, if Turns can parse its API; otherwise a model that
// wrote none.
func opencodeModelOf(messages []opencodeMessage) opencodeModel {
	var model opencodeModel
	for _, m := range messages {
		if m.Info.Role != "assistant" {
			continue
		}
		if model.ID != "" && model != m.Info.opencodeModel {
			model.Provider = ""
			break
		}
		model = m.Info.opencodeModel
	}
	if model.ID == "" || model.Provider != "anthropic" && model.Provider != "openai" {
		return opencodeModel{Provider: "fake", ID: "fake"}
	}
	model.own = true
	return model
}

// program is OpenCode itself for the pinned platform. opencode-ai is a launcher, which an install script
// would replace, but install scripts do not run.
func (opencodeCLI) program(h Home, args ...string) Command {
	program := filepath.Join(h.Installed, "node_modules", "opencode-linux-x64", "bin", "opencode")
	return Command{
		Args: append([]string{program}, args...),
		Env: []string{
			"XDG_CONFIG_HOME=" + filepath.Join(h.Dir, ".config"), "XDG_DATA_HOME=" + filepath.Join(h.Dir, ".data"),
			"XDG_STATE_HOME=" + filepath.Join(h.Dir, ".state"), "XDG_CACHE_HOME=" + filepath.Join(h.Dir, ".cache"),
			"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
			"OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_DISABLE_SHARE=1", "OPENCODE_DISABLE_PROJECT_CONFIG=1",
			"OPENCODE_DISABLE_CLAUDE_CODE=1", "OPENCODE_DISABLE_EXTERNAL_SKILLS=1",
		},
	}
}

// Prepare imports the session into the database.
func (c opencodeCLI) Prepare(_ context.Context, h Home, _ Session, run func(Command) error) error {
	return run(c.program(h, "import", filepath.Join(h.Dir, "session.json")))
}

// Command passes the prompt word by word, since OpenCode would quote an argument with spaces.
func (c opencodeCLI) Command(h Home, s Session, prompt string) Command {
	args := append([]string{"run", "--session", s.ID, "--model", c.model.name()}, strings.Fields(prompt)...)
	return c.program(h, args...)
}

// opencodeAsked is the user message that OpenCode sends in place of a request for a compaction. The summary
// is sent as the answer to it.
const opencodeAsked = "What did we do so far?"

// again is the role of turns that are sent of older compactions.
const again = "again"

// Turns represents the summary as contextd does, as a user's message. It comes first. Requests and summaries
// of older compactions are sent again if the tail that was kept begins before them.
func (c opencodeCLI) Turns(body []byte) (turns []Turn, err error) {
	if c.model.Provider == "openai" {
		turns, err = codexCLI{}.Turns(body)
	} else {
		turns, err = claudeCLI{}.Turns(body)
	}
	asked, compactions := false, 0
	for i := range turns {
		t := &turns[i]
		t.ID, t.Seam = repeatedID.ReplaceAllString(t.ID, ""), false
		switch {
		case t.Kind == Call:
			t.Body, asked = sameJSON(t.Body), false
		case t.Role == "user" && t.Kind == Text && t.Body == opencodeAsked:
			t.Role, asked = again, true
			compactions++
		case asked && t.Role == "assistant" && t.Kind == Text && c.thoughts[t.Body]:
			t.Role = again
		case asked && t.Role == "assistant" && t.Kind == Text && compactions == 1:
			t.Role, asked = "user", false
		case asked && t.Role == "assistant":
			t.Role, asked = again, t.Kind == Thinking
		default:
			asked = false
		}
	}
	return turns, err
}

// Own: the request for a compaction, the thinking of the model that answered it, older compactions, and the
// reminder that the agent changed, as from plan to build.
func (opencodeCLI) Own(t Turn) string {
	switch {
	case t.Role == again:
		return "older compaction"
	case t.Kind == Text && t.Role == "system":
		return "system prompt"
	case t.Kind == Text && t.Role == "user" && strings.HasPrefix(t.Body, reminderTag+"\nYour operational mode has changed"):
		return "change of agent"
	}
	return ""
}

// Revise: OpenCode marks a result as failed by its state alone. contextd also does so by a command's exit
// code, which it records in a label.
func (opencodeCLI) Revise(view []Turn, s Session) []Turn {
	read, err := harness.Read(bytes.NewReader(s.File), opencode.Name)
	if err != nil || len(read.Sessions) == 0 {
		return view
	}
	exited := map[string]bool{}
	for _, e := range read.Sessions[0].Events {
		m, ok := e.Body.(*eventlog.Message)
		if !ok || e.Labels[opencode.LabelExit] == "" {
			continue
		}
		for _, b := range m.Blocks {
			if r, ok := b.(eventlog.ToolResult); ok {
				exited[r.CallID] = true
			}
		}
	}
	for i := range view {
		if t := &view[i]; t.Kind == Result && exited[t.ID] {
			t.Failed = false
		}
	}
	return view
}

// repeatedID is the suffix that contextd adds to repeated ids of calls. OpenCode sends the ids in the file:
// without the suffix in its own files, and with it in files that contextd wrote.
var repeatedID = regexp.MustCompile(`#[0-9]+$`)

// Sends: OpenCode has its own system prompt, and cannot represent other providers' blocks. It adds results to
// open calls, and omits empty texts. Thinking of another model is sent as text; that of the same model only
// if it is sealed.
func (c opencodeCLI) Sends(t Turn) (Turn, bool) {
	if t.Interrupted {
		t.Interrupted, t.Body = false, "[Tool execution was interrupted]"
	}
	if c.model.Provider == "openai" {
		t.Failed = false // Responses has no flag for it
	}
	t.ID = repeatedID.ReplaceAllString(t.ID, "")
	switch t.Kind {
	case Thinking:
		switch {
		case !c.model.own:
			return Turn{Role: t.Role, Kind: Text, Body: t.Body}, strings.TrimSpace(t.Body) != ""
		case c.model.Provider == "openai":
			t.Signature = "" // it is the id of the item
			return t, t.Secret != ""
		case t.Secret != "":
			return Turn{Role: t.Role, Kind: Thinking, Secret: t.Secret}, true
		default:
			return t, t.Signature != ""
		}
	case Call:
		t.Body = sameJSON(objectOf(t.Body))
	}
	return t, t.Role != "system" && t.Kind != Other && (t.Kind != Text || t.Body != "")
}
