package opencode_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/harness/opencode"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// TestSessionID: a session id gets the prefix without which OpenCode refuses it.
func TestSessionID(t *testing.T) {
	for given, want := range map[string]string{
		"ses_0123":                             "ses_0123",
		"0195f7c2-7e1a-7a53-9b0c-3f6f0a4b6f10": "ses_0195f7c2-7e1a-7a53-9b0c-3f6f0a4b6f10",
	} {
		var out bytes.Buffer
		if _, err := opencode.Harness.Write(&out, transcript.Transcript{Sessions: []transcript.Session{{
			Events: []eventlog.Event{text(eventlog.RoleUser, "u", "Hi.", 1)},
		}}}, transcript.WriteOptions{SessionID: given}); err != nil {
			t.Fatal(err)
		}
		again, err := opencode.Harness.Read(&out)
		if err != nil {
			t.Fatal(err)
		}
		if got := again.Sessions[0].Labels[transcript.LabelSessionID]; got != want {
			t.Errorf("%s becomes %s", given, got)
		}
	}
}

func written(t *testing.T, events ...eventlog.Event) (file []byte, again transcript.Transcript) {
	t.Helper()
	var out bytes.Buffer
	if _, err := opencode.Harness.Write(&out, transcript.Transcript{Sessions: []transcript.Session{{Events: events}}}, transcript.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	file = bytes.Clone(out.Bytes())
	again, err := opencode.Harness.Read(&out)
	if err != nil {
		t.Fatal(err)
	}
	return file, again
}

func text(role eventlog.Role, id, said string, at int64) eventlog.Event {
	e := eventlog.Event{ID: id, Body: &eventlog.Message{Role: role, Blocks: []eventlog.Block{eventlog.Text{Text: said}}}}
	if at > 0 {
		e.Time = time.Unix(at, 0).UTC()
	}
	return e
}

// infosOf are the infos of a file's messages.
func infosOf(t *testing.T, file []byte) []info {
	t.Helper()
	var session struct {
		Messages []struct {
			Info info `json:"info"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(file, &session); err != nil {
		t.Fatal(err)
	}
	var all []info
	for _, m := range session.Messages {
		all = append(all, m.Info)
	}
	return all
}

type info struct {
	ID       string `json:"id"`
	Role     string `json:"role"`
	ParentID string `json:"parentID"`
	Time     struct {
		Created int64 `json:"created"`
	} `json:"time"`
}

// TestOrder: in the harness's order, by time and then by id, messages are in the order of the log, whatever
// their events' ids and even if times decrease.
func TestOrder(t *testing.T) {
	var events []eventlog.Event
	for i := range 12 {
		events = append(events, text(eventlog.RoleUser, fmt.Sprintf("msg-%d", i+1), "said", 0))
	}
	events = append(
		events, text(eventlog.RoleUser, "msg_0a1b2c", "later", 50), text(eventlog.RoleUser, "msg_00", "as late", 50),
		text(eventlog.RoleUser, "b", "earlier", 40), text(eventlog.RoleUser, "a", "at no time", 0),
	)
	file, _ := written(t, events...)
	all := infosOf(t, file)
	if len(all) != len(events) {
		t.Fatalf("%d messages", len(all))
	}
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		if a.Time.Created > b.Time.Created || a.Time.Created == b.Time.Created && a.ID >= b.ID {
			t.Errorf("message %d (%s at %d) comes before message %d (%s at %d)", i+1, b.ID, b.Time.Created, i, a.ID, a.Time.Created)
		}
	}
}

// TestNobodyAsked: a reply names a parent even if there is no user message before it.
func TestNobodyAsked(t *testing.T) {
	file, _ := written(t, text(eventlog.RoleAssistant, "a", "Hello", 1))
	if all := infosOf(t, file); len(all) != 1 || all[0].ParentID != all[0].ID || !strings.HasPrefix(all[0].ID, "msg_") {
		t.Errorf("the messages are %+v", all)
	}
}

// TestUnreadableSummary: a compaction without a summary drops nothing from the harness's prompt, and is read
// again.
func TestUnreadableSummary(t *testing.T) {
	before := uint64(900)
	want := eventlog.Compaction{Trigger: eventlog.TriggerThreshold, Mode: "auto", PreTokens: &before, KeptEventIDs: []string{"b"}}
	file, again := written(t, text(eventlog.RoleUser, "a", "Go", 1), text(eventlog.RoleAssistant, "b", "Gone", 2), eventlog.Event{ID: "c", Body: &want})
	if bytes.Contains(file, []byte(`"type":"compaction"`)) || !bytes.Contains(file, []byte(`"ignored":true`)) {
		t.Errorf("the harness would leave out what is before\n%s", file)
	}
	events := again.Sessions[0].Events
	got, ok := events[len(events)-1].Body.(*eventlog.Compaction)
	if !ok {
		t.Fatalf("the compaction became %T", events[len(events)-1].Body)
	}
	if got.Trigger != want.Trigger || got.Mode != want.Mode || got.PreTokens == nil || *got.PreTokens != before ||
		len(got.KeptEventIDs) != 1 || got.KeptEventIDs[0] != events[1].ID || got.Summary != "" {
		t.Errorf("it is %+v", got)
	}
}

// TestInterrupted: the model gets a tool's output up to the interruption, also after the session was written
// again.
func TestInterrupted(t *testing.T) {
	const file = `{"info":{"id":"ses_1","directory":"/src"},"messages":[{"info":{"id":"msg_1","role":"assistant","time":{"created":1}},
		"parts":[{"type":"tool","callID":"c","tool":"bash","state":{"status":"error","input":{},"error":"Tool execution aborted",
		"metadata":{"interrupted":true,"output":"one line\n","more":1},"time":{"start":1,"end":2}}}]}]}`
	read, err := opencode.Harness.Read(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var result *eventlog.ToolResult
	for _, e := range read.Sessions[0].Events {
		if m, ok := e.Body.(*eventlog.Message); ok && m.Role == eventlog.RoleTool {
			r, _ := m.Blocks[0].(eventlog.ToolResult)
			result = &r
		}
	}
	if result == nil || result.IsError || len(result.Content) != 1 || result.Content[0] != eventlog.Block(eventlog.Text{Text: "one line\n"}) {
		t.Errorf("the result is %+v", result)
	}
	var out bytes.Buffer
	if _, err := opencode.Harness.Write(&out, read, transcript.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"status":"error"`, `"interrupted":true`, `"output":"one line\n"`, `"error":"Tool execution aborted"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in\n%s", want, out.String())
		}
	}
}

// TestKeptSaidAgain: OpenCode can keep only tails, so other kept messages are repeated after the compaction.
// They are read as kept events again.
func TestKeptSaidAgain(t *testing.T) {
	file, again := written(
		t, text(eventlog.RoleUser, "a", "Goal", 1), text(eventlog.RoleAssistant, "b", "Step", 2), text(eventlog.RoleUser, "c", "Also", 3),
		eventlog.Event{ID: "d", Body: &eventlog.Compaction{Summary: "One step.", KeptEventIDs: []string{"a", "c"}}},
		text(eventlog.RoleAssistant, "e", "Next", 4),
		eventlog.Event{ID: "f", Body: &eventlog.Compaction{Summary: "Two steps.", KeptEventIDs: []string{"c", "e"}}},
		text(eventlog.RoleUser, "g", "Last", 5),
	)
	if got, want := prompt(t, file), []string{"", "Two steps.", "Also", "Next", "Last"}; !slices.Equal(got, want) {
		t.Errorf("OpenCode goes on with %q instead of %q from\n%.2000s", got, want, file)
	}
	events := again.Sessions[0].Events
	if len(events) < 7 {
		t.Fatalf("there are %d events", len(events))
	}
	var kept [][]string
	messages := 0
	for _, e := range events {
		switch b := e.Body.(type) {
		case *eventlog.Compaction:
			kept = append(kept, b.KeptEventIDs)
		case *eventlog.Message:
			messages++
		}
	}
	if messages != 5 || len(kept) != 2 || !slices.Equal(kept[0], []string{events[0].ID, events[2].ID}) || len(kept[1]) != 2 || kept[1][0] != events[2].ID {
		t.Errorf("%d messages came back, and the compactions keep %v", messages, kept)
	}
	var out bytes.Buffer
	if _, err := opencode.Harness.Write(&out, again, transcript.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	var first, second any
	if json.Unmarshal(file, &first) != nil || json.Unmarshal(out.Bytes(), &second) != nil || !reflect.DeepEqual(first, second) {
		t.Errorf("written again it is\n%.2000s\nand was\n%.2000s", out.Bytes(), file)
	}
}

// prompt orders a file's messages as the harness does, and returns the texts from the last compaction on: its
// request, its summary, and the messages after it.
func prompt(t *testing.T, file []byte) []string {
	t.Helper()
	var session struct {
		Messages []struct {
			Info  info
			Parts []struct{ Type, Text, TailStartID string }
		}
	}
	if err := json.Unmarshal(file, &session); err != nil {
		t.Fatal(err)
	}
	all := session.Messages
	slices.SortFunc(all, func(a, b struct {
		Info  info
		Parts []struct{ Type, Text, TailStartID string }
	},
	) int {
		return cmp.Or(cmp.Compare(a.Info.Time.Created, b.Info.Time.Created), cmp.Compare(a.Info.ID, b.Info.ID))
	})
	var said []string
	for _, m := range all {
		text := ""
		for _, p := range m.Parts {
			if p.Type == "compaction" {
				said = nil
			}
			text += p.Text
		}
		said = append(said, text)
	}
	return said
}
