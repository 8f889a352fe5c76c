package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// claudeCLI is Claude Code.
type claudeCLI struct{}

func (claudeCLI) Name() string { return "claude" }

// claudeConfig is the folder with its settings and transcripts.
func claudeConfig(h Home) string { return filepath.Join(h.Dir, "claude") }

var notInProjectName = regexp.MustCompile(`[^A-Za-z0-9]`)

// Place writes the transcript into the project of the working directory, the only place where Claude Code
// looks for it.
func (claudeCLI) Place(h Home, s Session) error {
	work, err := filepath.EvalSymlinks(h.Work)
	if err != nil {
		return err
	}
	project := notInProjectName.ReplaceAllString(work, "-")
	return writeFiles(claudeConfig(h), map[string][]byte{"projects/" + project + "/" + s.ID + ".jsonl": s.File})
}

// Command runs the binary itself, since the install script that would link it into node_modules/.bin does not
// run.
func (claudeCLI) Command(h Home, s Session, prompt string) Command {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	return Command{
		Args: []string{
			filepath.Join(h.Installed, "node_modules", "@anthropic-ai", "claude-code-"+runtime.GOOS+"-"+arch, "claude"),
			"-p", "--resume", s.ID, prompt,
		},
		Env: []string{
			"CLAUDE_CONFIG_DIR=" + claudeConfig(h), "ANTHROPIC_BASE_URL=" + h.URL, "ANTHROPIC_API_KEY=sk-none",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
			"DISABLE_AUTOUPDATER=1", "DISABLE_AUTO_COMPACT=1",
		},
	}
}

const reminderTag = "<system-reminder>"

// claudeOwn are texts that Claude Code adds, as system messages or as reminders in user messages, depending
// on the model.
var claudeOwn = ownTexts{
	{"# Environment\nYou have been invoked in the following environment", "environment"},
	{"You are powered by the model named ", "model"},
	{"Today's date is ", "date"},
	{"Attribution for git commits and pull requests", "attribution of commits"},
	{"The following deferred tools are now available", "tools"},
	{"Available agent types for the Agent tool:", "agents"},
	{"When you launch multiple agents for independent work", "agents"},
	{"The following skills are available for use with the Skill tool:", "skills"},
	{"- dataviz: ", "skills"},
	{"<total_tokens>", "tokens left"},
	{"The task tools haven't been used recently", "task tools"},
}

// Upgrade sets the version of all records to that of the pinned CLI, since contextd puts the frames of a
// record's version around words.
func (claudeCLI) Upgrade(file []byte) []byte {
	return versions.ReplaceAll(file, []byte(`"version":"`+pinned("claude")+`"`))
}

var versions = regexp.MustCompile(`"version":"[0-9.]+"`)

// Own: Claude Code adds the texts of claudeOwn between other messages. It also adds messages to keep roles
// alternating: an answer if the session ends with a user's message, and a user's message if the model spoke
// twice.
func (claudeCLI) Own(t Turn) string {
	if t.Kind != Text {
		return ""
	}
	reminder, reminds := strings.CutPrefix(t.Body, reminderTag)
	switch {
	case t.Role == "system":
		return claudeOwn.explain(t.Body)
	case t.Role == "user" && reminds:
		return claudeOwn.explain(strings.TrimSuffix(strings.TrimSpace(reminder), "</system-reminder>"))
	case t.Role == "user" && t.Body == "(no content)", t.Role == "assistant" && t.Body == "No response requested.":
		return "kept roles in turns"
	}
	return ""
}

// claudeInterrupted is the result that it sends for an open call.
const claudeInterrupted = "[Tool call interrupted: the session ended before this call's result was recorded, so its " +
	"outcome is unknown. Check whether it took effect before relying on it or running it again.]"

// renamedTools are old names of tools that it replaces by new ones.
var renamedTools = map[string]string{"Task": "Agent"}

// Revise: Claude Code does not find prompts from the queue again that have no attachment. It also omits what
// the Messages API refuses: texts of only whitespace, thinking without a seal or with that of another model,
// thinking that nothing of the same reply follows, tools that the provider began to run but has no result of,
// and calls without results unless they are at the end of the session. Where contextd wrote the session for
// it, it added results to such calls.
func (claudeCLI) Revise(view []Turn, s Session) []Turn {
	open, given := map[string]bool{}, bytes.Contains(s.File, []byte(`"contextd":{"interrupted":true}`))
	for i := range view {
		t := &view[i]
		if !t.Interrupted || !slices.ContainsFunc(view[i:], func(t Turn) bool { return t.Kind != Call && t.Kind != Result }) {
			continue
		}
		open[t.ID] = !given
		t.Interrupted = !given // the result is in the file, with the text of the view
	}
	forgotten := unattached(s)
	var sent []Turn
	for _, t := range slices.Backward(view) {
		sealed := t.Signature+t.Secret != "" && !t.Foreign && len(sent) > 0 && sent[len(sent)-1].Role == "assistant"
		switch {
		case t.Kind == Text && t.Role == "user" && forgotten[wordsIn(t.Body)] > 0:
			forgotten[wordsIn(t.Body)]--
		case t.Kind == Text && strings.TrimSpace(t.Body) == "":
		case t.Kind == Thinking && !sealed:
		case t.Kind == Other && strings.Contains(t.Body, `"server_tool_use"`) && !strings.Contains(t.Body, `"tool_use_id"`):
		case open[t.ID]:
		default:
			sent = append(sent, t)
		}
	}
	slices.Reverse(sent)
	return sent
}

// wordsIn are the words within a frame, or the whole text if there is no frame.
func wordsIn(text string) string {
	inner, ok := strings.CutPrefix(text, reminderTag+"\n")
	if !ok {
		return text
	}
	if words, isMessage := strings.CutPrefix(inner, frameHeads[0]); isMessage {
		return words[:max(0, strings.LastIndex(words, "\n\n"))]
	}
	_, words, _ := strings.Cut(inner, "\n\n")
	return strings.TrimSuffix(words, "\n</system-reminder>")
}

// unattached counts the prompts that a transcript takes out of the queue in the middle of a turn, and for
// which there is neither an attachment nor a user's record.
func unattached(s Session) map[string]int {
	prompts := map[string]int{}
	var waiting []string
	for line := range bytes.Lines(s.File) {
		var r struct {
			Type, Operation, Content, Reason string
			Attachment                       struct {
				Type   string
				Prompt json.RawMessage
			}
		}
		if json.Unmarshal(line, &r) != nil {
			continue
		}
		switch {
		case r.Attachment.Type == "queued_command":
			if blocks, err := messagesBlocks(r.Attachment.Prompt); err == nil {
				for _, b := range blocks {
					prompts[b.Text]--
				}
			}
		case r.Type != "queue-operation":
		case r.Operation == "enqueue":
			waiting = append(waiting, r.Content)
		case r.Operation == "remove" || r.Operation == "dequeue" || r.Operation == "popAll":
			i := slices.IndexFunc(waiting, func(w string) bool {
				return w == r.Content || r.Content == "" && !strings.HasPrefix(w, "{") && !strings.HasPrefix(w, "<task-notification>")
			})
			text := r.Content
			if i >= 0 {
				text = waiting[i]
				waiting = slices.Delete(waiting, i, i+1)
			}
			if r.Operation == "remove" && (r.Reason == "" || r.Reason == "absorbed_mid_turn") {
				prompts[text]++
			}
		}
	}
	return prompts
}

// objectOf wraps arguments that are not JSON, as the writers for Claude Code, OpenCode and pi do.
func objectOf(arguments string) string {
	if json.Valid([]byte(arguments)) {
		return arguments
	}
	wrapped, err := json.Marshal(map[string]string{"raw_arguments": arguments})
	if err != nil {
		return arguments
	}
	return string(wrapped)
}

// Sends: Claude Code adds a result to an open call.
func (claudeCLI) Sends(t Turn) (Turn, bool) {
	switch {
	case t.Interrupted:
		t.Interrupted, t.Body = false, claudeInterrupted
	case t.Kind == Call:
		if name, ok := renamedTools[t.Name]; ok {
			t.Name = name
		}
		t.Body = sameJSON(objectOf(cmp.Or(t.Body, "{}")))
	case t.Kind == Other:
		t.Body = sameJSON(t.Body)
	}
	return t, true
}
