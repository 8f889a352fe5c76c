package claude

import "github.com/contextd/contextd/internal/harness/transcript"

// notKept is everything in Claude Code's files that a session does not keep.
var notKept = []transcript.NotKept{
	{Entry: "progress", Reason: "what the terminal showed while hooks, commands and subagents ran; a subagent's messages in it are kept as its session"},
	{Entry: "file-history-snapshot", Reason: "names copies of files next to the transcripts, for undoing edits"},
	{Entry: "*", Field: "toolUseResult", Reason: "repeats the result in another form, for the terminal; the model does not see it"},
}

// dropped are the entries of notKept that are left out as a whole.
var dropped = func() map[string]bool {
	all := map[string]bool{}
	for _, row := range notKept {
		if row.Field == "" {
			all[row.Entry] = true
		}
	}
	return all
}()

// withoutMembers are the members of notKept that any entry may have.
var withoutMembers = func() map[string]bool {
	all := map[string]bool{}
	for _, row := range notKept {
		if row.Field != "" {
			all[row.Field] = true
		}
	}
	return all
}()
