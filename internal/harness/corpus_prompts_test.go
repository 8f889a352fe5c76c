package harness_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
)

// TestCorpusPrompts: each human prompt that an independent reading of the file finds is in a user message
// without the label for injected ones.
func TestCorpusPrompts(t *testing.T) {
	found := map[string]int{}
	for _, x := range corpus(t) {
		find, ok := promptsOf[x.Format]
		if !ok {
			continue
		}
		data := corpusFile(t, x.File)
		tr, err := harness.Read(bytes.NewReader(data), "")
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, s := range tr.Sessions {
			for _, e := range s.Events {
				m, ok := e.Body.(*eventlog.Message)
				if !ok || m.Role != eventlog.RoleUser || e.Injected() {
					continue
				}
				for _, b := range m.Blocks {
					if text, ok := b.(eventlog.Text); ok {
						said = append(said, text.Text)
					}
				}
			}
		}
		all := strings.Join(said, "\n")
		for _, prompt := range find(data) {
			if prompt = strings.TrimSpace(prompt); prompt == "" {
				continue
			}
			found[x.Format]++
			if !strings.Contains(all, prompt) {
				t.Errorf("%s: no user says %.200q", x.File, prompt)
			}
		}
	}
	for format := range promptsOf {
		if found[format] == 0 {
			t.Errorf("no prompt was found in %s: the check checks nothing", format)
		}
	}
	t.Logf("prompts: %v", found)
}

// promptsOf finds the prompts of humans in a file of a format.
var promptsOf = map[string]func([]byte) []string{
	"claude-code": claudePrompts, "codex-rollout": codexPrompts, "copilot-cli": copilotPrompts, "opencode": opencodePrompts,
	"gemini-cli": geminiPrompts, "pi": piPrompts, "openhands": openhandsPrompts, "tau-bench": chatPrompts,
	"tau2-bench": chatPrompts, "mini-swe-agent": chatPrompts,
}

// object is a JSON object of any shape.
type object map[string]any

func (o object) in(name string) object {
	inner, _ := o[name].(map[string]any)
	return inner
}

func (o object) text(name string) string {
	text, _ := o[name].(string)
	return text
}

func (o object) list(name string) []object {
	var all []object
	elements, _ := o[name].([]any)
	for _, e := range elements {
		if inner, ok := e.(map[string]any); ok {
			all = append(all, inner)
		}
	}
	return all
}

// texts are the texts of a content, which is a string or a list with parts of the type.
func (o object) texts(name, part string) []string {
	if text := o.text(name); text != "" {
		return []string{text}
	}
	var all []string
	for _, p := range o.list(name) {
		if p.text("type") == part {
			all = append(all, p.text("text"))
		}
	}
	return all
}

func lines(data []byte) []object {
	var all []object
	for line := range bytes.Lines(data) {
		var o object
		if json.Unmarshal(line, &o) == nil {
			all = append(all, o)
		}
	}
	return all
}

func document(data []byte) object {
	var o object
	if json.Unmarshal(data, &o) != nil {
		return nil
	}
	return o
}

// notHuman matches the beginnings of what Claude Code writes in the user's name, and of reports of commands;
// of a command only its arguments are the user's.
var (
	notHuman    = regexp.MustCompile(`^\s*(<local-command-|<system-reminder>|<task-notification>|\[Request interrupted|Caveat: )`)
	commandArgs = regexp.MustCompile(`(?s)<command-args>(.*?)</command-args>`)
)

func claudePrompts(data []byte) []string {
	var all, queue []string
	local := false
	for _, r := range lines(data) {
		switch r.text("type") {
		case "user":
			if r["isMeta"] == true || r["isCompactSummary"] == true {
				local = r["isMeta"] == true && !strings.Contains(strings.Join(r.in("message").texts("content", "text"), ""), "Base directory")
				continue
			}
			for _, text := range r.in("message").texts("content", "text") {
				args := commandArgs.FindStringSubmatch(text)
				switch {
				case notHuman.MatchString(text):
				case args == nil && !strings.HasPrefix(text, "<command-"):
					all = append(all, text)
				case args != nil && !local:
					all = append(all, args[1])
				}
			}
		case "attachment":
			if a := r.in("attachment"); a.text("type") == "queued_command" && a.in("origin").text("kind") == "human" {
				all = append(all, a.texts("prompt", "text")...)
			}
		case "queue-operation":
			switch content := r.text("content"); r.text("operation") {
			case "enqueue":
				if !strings.HasPrefix(content, "{") && !strings.HasPrefix(content, "<task") {
					queue = append(queue, content)
				}
			case "remove":
				if len(queue) > 0 {
					all = append(all, queue[0])
					queue = queue[1:]
				}
			case "dequeue":
				if len(queue) > 0 {
					queue = queue[1:]
				}
			}
		}
	}
	return all
}

func codexPrompts(data []byte) []string {
	var all []string
	for _, r := range lines(data) {
		if p := r.in("payload"); p.text("type") == "user_message" {
			all = append(all, p.text("message"))
		}
	}
	return all
}

func copilotPrompts(data []byte) []string {
	var all []string
	for _, r := range lines(data) {
		if r.text("type") == "user.message" {
			all = append(all, r.in("data").text("content"))
		}
	}
	return all
}

func opencodePrompts(data []byte) []string {
	var all []string
	for _, m := range document(data).list("messages") {
		for _, p := range m.list("parts") {
			if m.in("info").text("role") == "user" && p.text("type") == "text" && p["synthetic"] != true && p["ignored"] != true {
				all = append(all, p.text("text"))
			}
		}
	}
	return all
}

func geminiPrompts(data []byte) []string {
	var all []string
	for _, m := range document(data).list("messages") {
		if m.text("type") != "user" {
			continue
		}
		all = append(all, m.text("content"))
		for _, p := range m.list("content") {
			all = append(all, p.text("text"))
		}
	}
	return all
}

func piPrompts(data []byte) []string {
	var all []string
	for _, r := range lines(data) {
		switch m := r.in("message"); m.text("role") {
		case "user":
			all = append(all, m.texts("content", "text")...)
		case "bashExecution":
			all = append(all, m.text("command"))
		}
	}
	return all
}

func openhandsPrompts(data []byte) []string {
	var all []string
	for _, run := range lines(data) {
		for _, e := range run.list("history") {
			if e.text("source") == "user" && e.text("action") == "message" {
				all = append(all, e.in("args").text("content"))
			}
		}
	}
	return all
}

func chatPrompts(data []byte) []string {
	var all []string
	d := document(data)
	for _, m := range append(d.list("messages"), d.list("traj")...) {
		if m.text("role") == "user" {
			all = append(all, m.text("content"))
		}
	}
	return all
}
