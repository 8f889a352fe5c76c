package cursor

import "github.com/contextd/contextd/internal/harness/transcript"

// notKept is what the reader leaves out.
var notKept = []transcript.NotKept{
	{Entry: "bubble", Field: "richText", Reason: "the text once more, as the editor holds it"},
	{Entry: "bubble", Field: "toolFormerData.params", Reason: "the arguments once more, as the tool took them; read where there are no others"},
	{Entry: "bubble", Field: "toolFormerData.additionalData", Reason: "how the user was shown the call, but for a status that says that it failed"},
	{Entry: "bubble", Field: "images", Reason: "pictures are named by files of the editor, which are not part of the database"},
	{Entry: "bubble", Field: "context", Reason: "what the user attached; what of it the model was sent is not stored"},
	{Entry: "bubble", Field: "lints", Reason: "one of dozens of lists about the editor's state, mostly empty"},
	{Entry: "composer", Field: "codeBlockData", Reason: "the state of edits in the editor"},
	{Entry: "composer", Field: "originalFileStates", Reason: "whole files as they were before edits"},
	{Entry: "row", Field: "", Reason: "rows of other families: checkpoints, diffs, contexts of requests"},
}
