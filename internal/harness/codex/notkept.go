package codex

import "github.com/contextd/contextd/internal/harness/transcript"

const (
	repeatsItem = "shows in the terminal what a response item says"
	rebuilt     = "repeats a message for the terminal; rebuilt from it"
)

// notKept is everything in Codex's rollouts that a session does not keep. The kinds
// are the type of the record and of its payload.
var notKept = []transcript.NotKept{
	{Entry: "event_msg/user_message", Reason: rebuilt},
	{Entry: "event_msg/agent_message", Reason: rebuilt},
	{Entry: "event_msg/agent_reasoning*", Reason: repeatsItem},
	{Entry: "event_msg/exec_command_*", Reason: repeatsItem},
	{Entry: "event_msg/patch_apply_*", Reason: repeatsItem},
	{Entry: "event_msg/mcp_tool_call_*", Reason: repeatsItem},
	{Entry: "event_msg/web_search_*", Reason: repeatsItem},
	{Entry: "event_msg/task_complete", Field: "payload.last_agent_message", Reason: repeatsItem},
}

// dropped reports whether an event is left out as a whole.
func dropped(event string) bool {
	for _, row := range notKept {
		if row.Field == "" && row.Covers("event_msg/"+event) {
			return true
		}
	}
	return false
}
