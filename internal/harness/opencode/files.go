package opencode

import (
	"github.com/contextd/contextd/internal/harness/transcript"
)

// editors are OpenCode's own, but for apply_patch.
var editors = transcript.Editors{"edit": {"filePath"}, "multiedit": {"filePath"}, "write": {"filePath"}}

// filesChanged are the files that a tool which has done its work changed.
func (p *part) filesChanged() []string {
	if p.State.failed() {
		return nil
	}
	if p.Tool != "apply_patch" && p.Tool != "patch" {
		return editors.Files(p.Tool, p.State.Input)
	}
	var input struct {
		Patch string `json:"patchText"`
	}
	if transcript.Decode(p.State.Input, &input) != nil {
		return nil
	}
	return transcript.PatchFiles(input.Patch)
}

// fileNames are a list of names.
type fileNames []string

// UnmarshalJSON never fails: parts of other kinds may have such a member.
func (f *fileNames) UnmarshalJSON(raw []byte) error {
	var names []string
	if transcript.Decode(raw, &names) != nil {
		names = nil
	}
	*f = names
	return nil
}
