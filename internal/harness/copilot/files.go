package copilot

import "github.com/contextd/contextd/internal/harness/transcript"

// editors are Copilot's own.
var editors = transcript.Editors{"create": {"path"}, "edit": {"path"}, "str_replace_editor": {"path"}}

// filesOf are the files that a call is to change.
func filesOf(tool string, arguments []byte) []string {
	var a struct {
		Command string `json:"command"`
	}
	if tool == "str_replace_editor" && (transcript.Decode(arguments, &a) != nil || a.Command == "view") {
		return nil
	}
	return editors.Files(tool, arguments)
}
