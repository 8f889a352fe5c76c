package harness_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/harnesstest"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// foreign is a session that no harness wrote: a runtime appended its events by the API, and contextd
// compacted it.
func foreign() transcript.Transcript {
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	var events []eventlog.Event
	add := func(id string, body eventlog.Body, labels map[string]string) {
		at = at.Add(time.Second)
		events = append(events, eventlog.Event{ID: id, Time: at, Body: body, Labels: labels})
	}
	say := func(id string, role eventlog.Role, group string, blocks ...eventlog.Block) {
		m := &eventlog.Message{Role: role, GroupID: group, Blocks: blocks}
		var labels map[string]string
		if role == eventlog.RoleAssistant {
			m.Model = "model-x"
			labels = transcript.Usage{Prompt: 120, CacheRead: 100, Output: 7}.Labels()
		}
		add(id, m, labels)
	}
	const a, u, tool = eventlog.RoleAssistant, eventlog.RoleUser, eventlog.RoleTool
	say("event/1", u, "", eventlog.Text{Text: "Fix \"it\", <please> & thanks\nséance 😀"})
	say("event/2", a, "", eventlog.Text{Text: "I look."},
		eventlog.ToolCall{CallID: "call 1", Name: "read", Arguments: `{"path":"a.go","n":1.0,"big":9007199254740993,"huge":1e400}`},
		eventlog.ToolCall{CallID: "call:2", Name: "run", Arguments: `{"cmd":"go test \u003c ./..."}`})
	say("event/3", tool, "", eventlog.ToolResult{CallID: "call 1", Content: []eventlog.Block{eventlog.Text{Text: "package a"}}})
	say("event/4", tool, "", eventlog.ToolResult{CallID: "call:2", IsError: true, Content: []eventlog.Block{eventlog.Text{Text: "Exit code: 1\nFAIL"}}})
	say("event/5", a, "g5", eventlog.Text{Text: "It fails."})
	say("event/6", u, "", eventlog.Text{Text: "Go on."})
	pre, post := uint64(5000), uint64(900)
	add("event/7", &eventlog.Compaction{
		Trigger: eventlog.TriggerThreshold, Summary: "The parser was read and fails.", PreTokens: &pre, PostTokens: &post,
		KeptEventIDs: []string{"event/6"}, Mode: "prefix", Strategy: "summary_prefix",
	}, nil)
	say("event/8", a, "g8", eventlog.ToolCall{CallID: "call-3", Name: "list", Arguments: `[1,"two"]`})
	say("event/9", tool, "", eventlog.ToolResult{CallID: "call-3", Content: []eventlog.Block{eventlog.Text{Text: "nothing"}}})
	add("event/10", &eventlog.Compaction{Trigger: eventlog.TriggerManual, Summary: "Nothing was found."}, nil)
	say("event/11", a, "g11", eventlog.Text{Text: "Done."})
	return transcript.Transcript{Sessions: []transcript.Session{{Events: events}}, Compactions: 2}
}

// TestHostedReasoning: what a host of models sealed is no signature of their maker's to a harness. The one that has a place
// for it gets it back as it was.
func TestHostedReasoning(t *testing.T) {
	const list = `"reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"c2ln"}]`
	sealed := eventlog.Thinking{Text: "hm", Signature: "{" + list + "}"}
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	events := []eventlog.Event{
		{ID: "1", Time: at, Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: "Go."}}}},
		{ID: "2", Time: at, Body: &eventlog.Message{
			Role: eventlog.RoleAssistant, Model: "anthropic/claude-opus-5", Blocks: []eventlog.Block{sealed, eventlog.Text{Text: "I look."}},
		}},
	}
	wanted := map[string]eventlog.Block{"opencode": sealed}
	for _, h := range harness.All() {
		if h.Write == nil {
			continue
		}
		var file bytes.Buffer
		if _, err := h.Write(&file, transcript.Transcript{Sessions: []transcript.Session{{Events: events}}}, transcript.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		want, ok := wanted[h.Name]
		if !ok {
			if strings.Contains(file.String(), "c2ln") {
				t.Errorf("%s: %s", h.Name, file.String())
			}
			continue
		}
		again, err := h.Read(&file)
		if err != nil {
			t.Fatal(err)
		}
		said := again.Sessions[0].Events
		if m, ok := said[len(said)-1].Body.(*eventlog.Message); !ok || len(m.Blocks) == 0 || m.Blocks[0] != want {
			t.Errorf("%s: %v", h.Name, said)
		}
	}
}

// TestForeign: a session that no harness wrote becomes a file of each harness. Read again it is the same
// session, and written again the same file.
func TestForeign(t *testing.T) {
	for _, h := range harness.All() {
		if h.Write == nil {
			continue
		}
		t.Run(h.Name, func(t *testing.T) {
			tr := foreign()
			read := func(file []byte) transcript.Transcript {
				again, err := h.Read(bytes.NewReader(file))
				if err != nil {
					t.Fatalf("what was written cannot be read: %v\n%s", err, file)
				}
				harnesstest.Admitted(t, again)
				return again
			}
			write := func(tr transcript.Transcript) []byte {
				var file bytes.Buffer
				report, err := h.Write(&file, tr, transcript.WriteOptions{})
				if err != nil || report.Compactions != tr.Compactions {
					t.Errorf("the report counts %d compactions of %d: %v", report.Compactions, tr.Compactions, err)
				}
				return file.Bytes()
			}
			file := write(tr)
			again := read(file)
			want, got := factsOf(tr), factsOf(again)
			for _, d := range dimensions {
				if diff := cmp.Diff(want[d], got[d]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", d, diff)
				}
			}
			second := write(again)
			if diff := cmp.Diff(string(second), string(write(read(second)))); diff != "" {
				t.Errorf("written again, it is another file (-second +third):\n%s", diff)
			}
			write(transcript.Transcript{Sessions: []transcript.Session{{}}})
		})
	}
}
