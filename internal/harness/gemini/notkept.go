package gemini

import "github.com/contextd/contextd/internal/harness/transcript"

// notKept is what the reader leaves out.
var notKept = []transcript.NotKept{
	{Entry: "gemini", Field: "toolCalls[].resultDisplay", Reason: "what a tool shows the user: whole files before and after, and the output once more"},
	{Entry: "gemini", Field: "toolCalls[].description", Reason: "a text for the user's eyes"},
	{Entry: "gemini", Field: "toolCalls[].displayName", Reason: "a text for the user's eyes"},
	{Entry: "gemini", Field: "toolCalls[].renderOutputAsMarkdown", Reason: "how the user is shown the output"},
	{Entry: "gemini", Field: "thoughts[].timestamp", Reason: "an event has one time"},
	{Entry: "gemini", Field: "tokens.tool", Reason: "tokens of tools' prompts, which no label has"},
	{Entry: "*", Field: "displayContent", Reason: "what the user is shown in place of the content"},
	{Entry: "session", Field: "projectHash", Reason: "made from the directory"},
	{Entry: "session", Field: "startTime", Reason: "the first event has it"},
	{Entry: "session", Field: "lastUpdated", Reason: "the last event has it"},
	{Entry: "session", Field: "summary", Reason: "a title for the list of sessions"},
	{Entry: "session", Field: "memoryScratchpad", Reason: "notes for extracting memories"},
}
