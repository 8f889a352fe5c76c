package opencode

import "github.com/contextd/contextd/internal/harness/transcript"

// notKept is what a session written again may lack.
var notKept = []transcript.NotKept{
	{Entry: "message/user", Field: "info.summary", Reason: "the files that the turn changed, whole and often most of a file's bytes; the calls show what changed"},
	{Entry: "message/assistant", Field: "parts[].state.metadata", Reason: "what a tool shows the user, mostly its output once more; an exit code and a subagent's session are labels"},
	{Entry: "member/*", Reason: "members of the file besides info and messages"},
}

// What a session written again may lack of the messages of a user and of a model.
var (
	notKeptOfUser  = transcript.FieldsOf(notKept, "message/user")
	notKeptOfModel = transcript.FieldsOf(notKept, "message/assistant")
)
