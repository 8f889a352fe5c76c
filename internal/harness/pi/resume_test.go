package pi_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/pi"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

func text(role eventlog.Role, id, said string) eventlog.Event {
	return eventlog.Event{ID: id, Body: &eventlog.Message{Role: role, Blocks: []eventlog.Block{eventlog.Text{Text: said}}}}
}

// written writes a session and reads it again.
func written(t *testing.T, events ...eventlog.Event) (file string, again transcript.Transcript) {
	t.Helper()
	var out bytes.Buffer
	if _, err := pi.Harness.Write(&out, transcript.Transcript{Sessions: []transcript.Session{{Events: events}}}, transcript.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	again, err := pi.Harness.Read(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), again
}

// TestSummaryIsTold: the blocks of a boundary are the text that pi sends with the summary.
func TestSummaryIsTold(t *testing.T) {
	_, again := written(t, text(eventlog.RoleUser, "a", "Go"), eventlog.Event{ID: "b", Body: &eventlog.Compaction{Summary: "Gone."}})
	c, ok := again.Sessions[0].Events[1].Body.(*eventlog.Compaction)
	if !ok {
		t.Fatalf("the compaction became %T", again.Sessions[0].Events[1].Body)
	}
	want := "The conversation history before this point was compacted into the following summary:\n\n<summary>\nGone.\n</summary>"
	if b := harness.BoundaryOf(c); len(b.Blocks) != 1 || b.Blocks[0] != eventlog.Block(eventlog.Text{Text: want}) || b.Last {
		t.Errorf("the boundary is %v", b)
	}
	foreign := &eventlog.Compaction{Summary: "Gone."}
	if b := harness.BoundaryOf(foreign); len(b.Blocks) != 1 || b.Blocks[0] != eventlog.Block(eventlog.Text{Text: "Gone."}) {
		t.Errorf("the boundary of another's compaction is %v", b)
	}
}

// TestUnreadableSummary: a compaction without a summary drops nothing from pi's prompt, and is read again.
func TestUnreadableSummary(t *testing.T) {
	before, after := uint64(900), uint64(90)
	want := eventlog.Compaction{
		Trigger: eventlog.TriggerThreshold, Mode: "auto", PreTokens: &before, PostTokens: &after, KeptEventIDs: []string{"b"},
	}
	file, again := written(t, text(eventlog.RoleUser, "a", "Go"), text(eventlog.RoleAssistant, "b", "Gone"), eventlog.Event{ID: "c", Body: &want})
	if strings.Contains(file, `"type":"compaction"`) {
		t.Errorf("pi would leave out what is before\n%s", file)
	}
	got, ok := again.Sessions[0].Events[2].Body.(*eventlog.Compaction)
	if !ok {
		t.Fatalf("the compaction became %T", again.Sessions[0].Events[2].Body)
	}
	if got.Trigger != want.Trigger || got.Mode != want.Mode || got.PreTokens == nil || *got.PreTokens != before ||
		got.PostTokens == nil || *got.PostTokens != after || len(got.KeptEventIDs) != 1 || got.KeptEventIDs[0] != "b" || got.Summary != "" {
		t.Errorf("it is %+v", got)
	}
	if twice, _ := written(t, again.Sessions[0].Events...); twice != file {
		t.Errorf("written again it is\n%s\nand was\n%s", twice, file)
	}
}

// TestParents: every parent that is written comes before its children, because pi follows parents until there
// is none.
func TestParents(t *testing.T) {
	const file = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/src"}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"Go"}}
{"type":"message","id":"b","parentId":"gone","timestamp":"2026-01-02T03:04:07.000Z","message":{"role":"user","content":"On"}}
{"type":"session_info","id":"c","parentId":"c","timestamp":"2026-01-02T03:04:08.000Z","name":"n"}
{"type":"compaction","id":"d","parentId":"e","timestamp":"2026-01-02T03:04:09.000Z","summary":"S","firstKeptEntryId":"b","tokensBefore":1}
{"type":"message","id":"e","parentId":"d","timestamp":"2026-01-02T03:04:10.000Z","message":{"role":"user","content":"Now"}}
`
	read, err := pi.Harness.Read(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := pi.Harness.Write(&out, read, transcript.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	last, n := "null", 0
	for line := range strings.Lines(out.String()) {
		parent, stated := transcript.MemberOf([]byte(line), "parentId")
		if !stated {
			continue
		}
		if n++; string(parent) != last {
			t.Errorf("the parent is %s and should be %s in %s", parent, last, line)
		}
		id, _ := transcript.MemberOf([]byte(line), "id")
		last = string(id)
	}
	if n != 5 {
		t.Errorf("%d entries have parents", n)
	}
}

// TestSaidMeanwhile: a message that came while calls ran is written after all their results, but not after a
// reply that goes on without those.
func TestSaidMeanwhile(t *testing.T) {
	ask := func(id, group string, calls ...string) eventlog.Event {
		m := &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: group}
		for _, call := range calls {
			m.Blocks = append(m.Blocks, eventlog.ToolCall{CallID: call, Name: "run", Arguments: "{}"})
		}
		return eventlog.Event{ID: id, Body: m}
	}
	answer := func(id, call string) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{eventlog.ToolResult{CallID: call}}}}
	}
	compacted := eventlog.Event{ID: "k", Body: &eventlog.Compaction{Summary: "S"}}
	for want, log := range map[string][]eventlog.Event{
		"a r s u":       {ask("a", "", "1", "2"), answer("r", "1"), text(eventlog.RoleUser, "u", "Also"), answer("s", "2")},
		"a r s u v b":   {ask("a", "g", "1"), text(eventlog.RoleUser, "u", "Also"), ask("c", "g", "2"), answer("r", "1"), text(eventlog.RoleUser, "v", "And"), answer("s", "2"), text(eventlog.RoleAssistant, "b", "Done")},
		"a u b":         {ask("a", "", "1"), text(eventlog.RoleUser, "u", "Stop"), text(eventlog.RoleAssistant, "b", "Yes")},
		"a u k r":       {ask("a", "", "1"), text(eventlog.RoleUser, "u", "Also"), compacted, answer("r", "1")},
		"a r u b v s w": {ask("a", "", "1"), text(eventlog.RoleUser, "u", "Also"), answer("r", "1"), ask("b", "", "2"), text(eventlog.RoleAssistant, "v", "On"), answer("s", "2"), text(eventlog.RoleUser, "w", "So")},
	} {
		file, again := written(t, log...)
		var got []string
		for _, e := range again.Sessions[0].Events {
			if !strings.Contains(e.ID, "/") { // the parts of a reply
				got = append(got, e.ID)
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("the order is %s and should be %s in\n%s", s, want, file)
		}
	}
}

// TestKeptSaidAgain: pi can keep only tails, so other kept entries are repeated after the compaction. They
// are read as kept events again.
func TestKeptSaidAgain(t *testing.T) {
	said := []eventlog.Event{
		text(eventlog.RoleUser, "a", "Goal"), text(eventlog.RoleAssistant, "b", "Step"), text(eventlog.RoleUser, "c", "Also"),
		{ID: "d", Body: &eventlog.Compaction{Summary: "One step.", KeptEventIDs: []string{"a", "c"}}},
		text(eventlog.RoleAssistant, "e", "Next"),
		{ID: "f", Body: &eventlog.Compaction{Summary: "Two steps.", KeptEventIDs: []string{"c", "e"}}},
		text(eventlog.RoleUser, "g", "Last"),
	}
	file, again := written(t, said...)
	if got, want := prompt(t, file), []string{"Two steps.", "Also", "Next", "Last"}; !slices.Equal(got, want) {
		t.Errorf("pi goes on with %q instead of %q from\n%s", got, want, file)
	}
	if len(again.Sessions) != 1 || len(again.Sessions[0].Events) != len(said) {
		t.Fatalf("there are %d sessions", len(again.Sessions))
	}
	for i, e := range again.Sessions[0].Events {
		if e.ID != said[i].ID {
			t.Errorf("event %d is %s", i, e.ID)
		}
		c, ok := e.Body.(*eventlog.Compaction)
		if want, is := said[i].Body.(*eventlog.Compaction); is != ok || is && !slices.Equal(c.KeptEventIDs, want.KeptEventIDs) {
			t.Errorf("event %d is %+v", i, e.Body)
		}
	}
	if twice, _ := written(t, again.Sessions[0].Events...); twice != file {
		t.Errorf("written again it is\n%s\nand was\n%s", twice, file)
	}
}

// TestKeptSaidAgainOld: the same in a file of version 1, where entries have positions and no ids.
func TestKeptSaidAgainOld(t *testing.T) {
	const file = `{"type":"session","id":"s","timestamp":"2025-11-20T23:33:00.805Z","cwd":"/src"}
{"type":"message","timestamp":"2025-11-20T23:33:01.000Z","message":{"role":"user","content":[{"type":"text","text":"Goal"}]}}
{"type":"message","timestamp":"2025-11-20T23:33:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Step"}],"model":"m","stopReason":"stop"}}
{"type":"message","timestamp":"2025-11-20T23:33:03.000Z","message":{"role":"user","content":[{"type":"text","text":"Also"}]}}
`
	read, err := pi.Harness.Read(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	s := &read.Sessions[0]
	kept := []string{s.Events[0].ID, s.Events[2].ID}
	s.Events = append(s.Events, eventlog.Event{ID: "c", Body: &eventlog.Compaction{Summary: "One step.", KeptEventIDs: kept}})
	var first, second bytes.Buffer
	if _, err := pi.Harness.Write(&first, read, transcript.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	again, err := pi.Harness.Read(bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := again.Sessions[0].Events[3].Body.(*eventlog.Compaction); !ok || !slices.Equal(c.KeptEventIDs, kept) || len(again.Sessions[0].Events) != 4 {
		t.Errorf("there are %d events, the fourth %+v", len(again.Sessions[0].Events), again.Sessions[0].Events[3].Body)
	}
	var said []string
	for _, line := range strings.Split(first.String(), "\n")[4:] {
		for _, word := range []string{`"firstKeptEntryIndex":4`, "Goal", "Step", "Also"} {
			if strings.Contains(line, word) {
				said = append(said, word)
			}
		}
	}
	if want := []string{`"firstKeptEntryIndex":4`, "Goal", "Also"}; !slices.Equal(said, want) {
		t.Errorf("pi goes on with %q from\n%s", said, first.String())
	}
	if _, err := pi.Harness.Write(&second, again, transcript.WriteOptions{}); err != nil || second.String() != first.String() {
		t.Errorf("written again it is\n%s\nand was\n%s", second.String(), first.String())
	}
}

// prompt follows a file as pi does, from the last entry to the root, and returns the newest summary, what it
// kept, and what comes after it.
func prompt(t *testing.T, file string) []string {
	t.Helper()
	type entry struct {
		Type, ID, ParentID, Summary, FirstKeptEntryID string
		Message                                       struct {
			Content []struct{ Text string }
		}
	}
	byID, last := map[string]entry{}, ""
	for line := range strings.Lines(file) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Type != "session" {
			byID[e.ID], last = e, e.ID
		}
	}
	var path []entry
	for e, ok := byID[last]; ok; e, ok = byID[e.ParentID] {
		path = append(path, e)
	}
	slices.Reverse(path)
	at := -1
	for i, e := range path {
		if e.Type == "compaction" {
			at = i
		}
	}
	said, keeping := []string{}, at < 0
	if at >= 0 {
		said = append(said, path[at].Summary)
	}
	for i, e := range path {
		keeping = keeping || i >= at || e.ID == path[at].FirstKeptEntryID
		if keeping && e.Type == "message" {
			said = append(said, e.Message.Content[0].Text)
		}
	}
	return said
}
