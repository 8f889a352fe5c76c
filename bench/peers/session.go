package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/evaluate"
	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

// session is the input of every library: messages, and at which of them the model is called. Reasoning and
// media are omitted, since the libraries have no common form for them.
type session struct {
	Name     string    `json:"name"`
	Messages []message `json:"messages"`
	Steps    []int     `json:"steps"`
	// Earlier are the calls before Steps, for libraries that keep state between calls.
	Earlier []int `json:"earlier,omitempty"`

	measured *evaluate.Session
	log      *evaluate.Log
	tokens   []uint64 // of each message
	timed    int      // how many messages a generated session has; 0 for a session that is measured
}

// sizes are the numbers of messages of the sessions that are timed.
var sizes = []int{100, 1_000, 10_000}

// message is one message of a chat.
type message struct {
	Role   string `json:"role"` // system, user, assistant or tool
	Text   string `json:"text,omitempty"`
	Calls  []call `json:"calls,omitempty"`
	CallID string `json:"call_id,omitempty"` // of a result
	Tool   string `json:"tool,omitempty"`
	Failed bool   `json:"failed,omitempty"`
}

type call struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// newSession makes a session from messages. Repeated ids of calls are made unique.
func newSession(name string, messages []message, gauge budget.Gauge) (*session, error) {
	events := make([]eventlog.Event, len(messages))
	for i, m := range messages {
		events[i] = m.event(fmt.Sprint(i))
	}
	_, admitted, err := eventlog.Head{}.Admit(events)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i := range admitted {
		admitted[i].Tokens = gauge.CountEvent(admitted[i])
	}
	s := &session{Name: name, Messages: messages, measured: evaluate.NewSession(name, "", admitted, gauge), log: evaluate.NewLog(gauge, projection.Options{})}
	for _, e := range admitted {
		s.tokens = append(s.tokens, budget.MessageOverhead+e.Tokens.Total())
	}
	for _, st := range s.measured.Steps {
		s.Steps = append(s.Steps, st.Before)
	}
	return s, nil
}

func (m message) event(id string) eventlog.Event {
	body := &eventlog.Message{}
	switch m.Role {
	case "system":
		body.Role = eventlog.RoleSystem
	case "user":
		body.Role = eventlog.RoleUser
	case "assistant":
		body.Role = eventlog.RoleAssistant
	case "tool":
		body.Role = eventlog.RoleTool
		body.Blocks = []eventlog.Block{eventlog.ToolResult{
			CallID: m.CallID, ToolName: m.Tool, Content: []eventlog.Block{eventlog.Text{Text: m.Text}}, IsError: m.Failed,
		}}
		return eventlog.Event{ID: id, Body: body}
	}
	if m.Text != "" || len(m.Calls) == 0 {
		body.Blocks = append(body.Blocks, eventlog.Text{Text: m.Text})
	}
	for _, c := range m.Calls {
		body.Blocks = append(body.Blocks, eventlog.ToolCall{CallID: c.ID, Name: c.Tool, Arguments: string(c.Arguments)})
	}
	return eventlog.Event{ID: id, Body: body}
}

// readFile returns the sessions of a transcript. An unreadable one is reported on stderr.
func readFile(path string, gauge budget.Gauge) ([]*session, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			data, err = io.ReadAll(z)
		}
		if err != nil {
			return nil, skip(path, err)
		}
	}
	if _, ok := harness.Detect(data); !ok {
		return nil, nil
	}
	transcript, err := harness.Read(bytes.NewReader(data), "")
	if err != nil {
		return nil, skip(path, err)
	}
	var out []*session
	for i, part := range transcript.Sessions {
		_, admitted, err := eventlog.Head{}.Admit(part.Events)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		conversation := reduce.NewConversation(gauge)
		for _, e := range admitted {
			conversation.Append(e)
		}
		s, err := newSession(fmt.Sprintf("%s-%d", strings.ReplaceAll(filepath.Base(path), ".", "_"), i), chat(conversation), gauge)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// chat converts a conversation to messages, with results directly after their call.
func chat(c *reduce.Conversation) (out []message) {
	calls := 0
	for _, g := range c.Groups() {
		ids := map[string]string{} // by the id in the log
		tools := map[string]string{}
		for i := range g.Messages {
			m := &g.Messages[i]
			var texts []string
			said := message{Role: m.Role.String()}
			for _, b := range m.Blocks {
				switch b := b.Block.(type) {
				case eventlog.Text:
					texts = append(texts, b.Text)
				case eventlog.ToolCall:
					calls++
					id := fmt.Sprintf("call_%d", calls)
					ids[b.CallID], tools[id] = id, b.Name
					arguments := json.RawMessage(b.Arguments)
					if !json.Valid(arguments) || !bytes.HasPrefix(bytes.TrimSpace(arguments), []byte("{")) {
						arguments = json.RawMessage(`{}`) // the libraries only accept objects
					}
					said.Calls = append(said.Calls, call{id, b.Name, arguments})
				case eventlog.ToolResult:
					id := ids[b.CallID]
					out = append(out, message{Role: "tool", Text: reduce.BodyText(b), CallID: id, Tool: tools[id], Failed: b.IsError})
				}
			}
			said.Text = strings.Join(texts, "\n")
			if m.Role != eventlog.RoleTool && (said.Text != "" || len(said.Calls) > 0) {
				out = append(out, said)
			}
		}
	}
	return out
}

// trace is a generated session of n messages: a system prompt, a question, and steps that each read a file of
// so many bytes.
func trace(n, bytes int) []message {
	out := []message{
		{Role: "system", Text: "You are a careful software engineer. Use the tools."},
		{Role: "user", Text: "Find out why the nightly build fails and fix it."},
	}
	for i := 0; len(out)+1 < n; i++ {
		var body strings.Builder
		for line := 1; body.Len() < bytes; line++ {
			fmt.Fprintf(&body, "%4d\tresult := process(step%dInput, %d) // part %d of the module\n", line, i, line*7, line%9)
		}
		id := fmt.Sprintf("call_%d", i)
		out = append(out,
			message{Role: "assistant", Text: fmt.Sprintf("I read module %d.", i), Calls: []call{{id, "read_file", json.RawMessage(fmt.Sprintf(`{"path":"src/module_%d.go"}`, i))}}},
			message{Role: "tool", Text: body.String(), CallID: id, Tool: "read_file"})
	}
	return append(out, message{Role: "assistant", Text: "Fixed."})
}

// skip reports a file that cannot be read; the others are read all the same.
func skip(path string, err error) error {
	_, err = fmt.Fprintf(os.Stderr, "skipped: %s: %v\n", path, err)
	return err
}

// corpus returns the sessions in a folder that have at least so many steps, every nth of them.
func corpus(dir string, least, every int, gauge budget.Gauge) ([]*session, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var out []*session
	n := 0
	for _, path := range files {
		read, err := readFile(path, gauge)
		if err != nil {
			return nil, err
		}
		for _, s := range read {
			if len(s.Steps) < least {
				continue
			}
			if n++; n%every == 0 {
				out = append(out, s)
			}
		}
	}
	return out, nil
}
