package claude

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
)

// TestLeft: messages are abandoned if they are not on the chain of the newest one and do not belong to
// replies on it.
func TestLeft(t *testing.T) {
	asks := func(uuid, parent string) string {
		return fmt.Sprintf(`{"type":"user","uuid":%q,"parentUuid":%q,"message":{"role":"user","content":%q}}`, uuid, parent, uuid)
	}
	says := func(uuid, parent, reply, block string) string {
		return fmt.Sprintf(`{"type":"assistant","uuid":%q,"parentUuid":%q,"message":{"role":"assistant","id":%q,"model":"claude-x","content":[%s]}}`, uuid, parent, reply, block)
	}
	call := func(id string) string { return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"ls","input":{}}`, id) }
	text := `{"type":"text","text":"Done."}`
	answers := func(uuid, parent, id string) string {
		return fmt.Sprintf(`{"type":"user","uuid":%q,"parentUuid":%q,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"a.go"}]}}`, uuid, parent, id)
	}
	root := strings.Replace(asks("u1", "x"), `"x"`, "null", 1)
	noted := func(uuid, parent string) string {
		return fmt.Sprintf(`{"type":"attachment","uuid":%q,"parentUuid":%q,"attachment":{}}`, uuid, parent)
	}
	carried := func(record string) string {
		return fmt.Sprintf(`{"type":"progress","parentToolUseID":"t","data":{"type":"agent_progress","agentId":"ag","message":%s}}`, strings.Replace(record, `,"parentUuid":"x"`, "", 1))
	}
	taken := `{"type":"queue-operation","operation":"remove","content":"And test it."}`
	for name, tc := range map[string]struct {
		records []string
		want    string
	}{
		"one chain":            {[]string{root, says("a1", "u1", "m1", text), asks("u2", "a1")}, ""},
		"gone back":            {[]string{root, says("a1", "u1", "m1", text), asks("u2", "a1"), says("a2", "u2", "m2", text), asks("u3", "a1")}, "a2 u2"},
		"from the first":       {[]string{root, says("a1", "u1", "m1", text), strings.Replace(asks("u2", "x"), `"x"`, "null", 1)}, "a1 u1"},
		"parallel calls":       {[]string{root, says("a1", "u1", "m1", call("1")), says("a2", "a1", "m1", call("2")), answers("r1", "a1", "1"), answers("r2", "a2", "2"), asks("u2", "r2")}, ""},
		"calls that were left": {[]string{root, says("a1", "u1", "m1", call("1")), answers("r1", "a1", "1"), asks("u2", "u1")}, "a1 r1"},
		"over a note":          {[]string{root, noted("n1", "u1"), says("a1", "n1", "m1", text), asks("u2", "a1")}, ""},
		"over what is dropped": {[]string{root, strings.Replace(noted("n1", "u1"), "attachment", "progress", 1), says("a1", "n1", "m1", text)}, ""},
		"written again":        {[]string{root, says("a1", "u1", "m1", text), says("a1", "u1", "m1", `{"type":"text","text":"Else."}`), asks("u2", "a1")}, "a1"},
		"nobody's":             {[]string{root, says("a1", "u1", "m1", text), asks("u2", "nobody"), says("a2", "u2", "m2", text)}, "a1 u1"},
		"of a subagent":        {[]string{carried(asks("u1", "x")), carried(says("a1", "x", "m1", call("1"))), carried(answers("r1", "x", "1")), carried(says("a2", "x", "m2", text))}, ""},
		"parents not told":     {[]string{root, strings.Replace(says("a1", "x", "m1", text), `,"parentUuid":"x"`, "", 1), asks("u2", "a1")}, ""},
		"from the queue":       {[]string{root, says("a1", "u1", "m1", text), taken, asks("u2", "a1")}, ""},
		"from the queue, left": {[]string{root, says("a1", "u1", "m1", text), asks("u2", "a1"), taken, asks("u3", "a1")}, "line-4 u2"},
		"over what was queued": {[]string{root, strings.Replace(noted("n1", "u1"), "{}", `{"type":"queued_command","prompt":"x"}`, 1), says("a1", "n1", "m1", text)}, ""},
		"a circle":             {[]string{root, asks("u2", "u3"), asks("u3", "u2")}, ""},
	} {
		read, err := read(strings.NewReader(strings.Join(tc.records, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		events := read.Sessions[0].Events
		if got := strings.Join(slices.Sorted(maps.Keys(left(events))), " "); got != tc.want {
			t.Errorf("%s: %q is left", name, got)
		}
		// What a runtime appends after it follows what is there.
		events = append(slices.Clone(events), eventlog.Event{ID: "live", Body: &eventlog.Message{
			Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{eventlog.Text{Text: "More."}},
		}})
		if got := strings.Join(slices.Sorted(maps.Keys(left(events))), " "); got != tc.want {
			t.Errorf("%s, and more: %q is left", name, got)
		}
	}
}
