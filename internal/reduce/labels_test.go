package reduce_test

import (
	"maps"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// A group has the labels of all its events, late results and further parts included;
// the groups that it was before keep theirs.
func TestLabelsOfGroups(t *testing.T) {
	conv := reduce.NewConversation(gauge)
	appendTo := func(seq eventlog.Seq, m *eventlog.Message, labels map[string]string) {
		conv.Append(eventlog.Event{Seq: seq, Turn: 1, ID: string(rune('a' + seq)), Labels: labels, Body: m})
	}
	text := func(s string) eventlog.Block { return eventlog.Text{Text: s} }
	user := map[string]string{"by": "user"}
	appendTo(1, &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{text("x")}}, user)
	appendTo(2, &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: "g", Blocks: []eventlog.Block{eventlog.ToolCall{CallID: "c", Name: "read"}}}, map[string]string{"stage": "plan"})
	early := conv.Groups()[1]
	appendTo(3, &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: "g", Blocks: []eventlog.Block{text("y")}}, nil)
	appendTo(4, &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{eventlog.ToolResult{CallID: "c", Content: []eventlog.Block{text("z")}}}}, map[string]string{"stage": "act", "host": "h"})
	appendTo(5, &eventlog.Message{Role: eventlog.RoleUser, GroupID: "g", Blocks: []eventlog.Block{text("w")}}, map[string]string{"more": ""})
	user["by"] = "changed"
	for i, want := range []map[string]string{{"by": "user"}, {"stage": "act", "host": "h", "more": ""}} {
		if got := conv.Groups()[i].Labels; !maps.Equal(got, want) {
			t.Errorf("group %d has %v, want %v", i, got, want)
		}
	}
	if want := map[string]string{"stage": "plan"}; !maps.Equal(early.Labels, want) {
		t.Errorf("the group of before has %v", early.Labels)
	}
}
