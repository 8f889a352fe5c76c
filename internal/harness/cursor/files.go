package cursor

import "github.com/contextd/contextd/internal/harness/transcript"

// editors are Cursor's own, with the members of their arguments, as the model or as the
// tool has them, that name the file.
var editors = transcript.Editors{
	"edit_file":      {"target_file", "relativeWorkspacePath"},
	"edit_file_v2":   {"target_file", "relativeWorkspacePath"},
	"search_replace": {"file_path", "relativeWorkspacePath"},
	"multiedit":      {"file_path", "relativeWorkspacePath"},
	"MultiEdit":      {"file_path", "relativeWorkspacePath"},
	"write":          {"file_path", "relativeWorkspacePath"},
	"delete_file":    {"target_file", "relativeWorkspacePath"},
	"edit_notebook":  {"target_notebook", "relativeWorkspacePath"},
}

// filesChanged is the file of a tool that has done its work: as the model named it, or
// else as the tool took it.
func (t *tool) filesChanged() []string {
	for _, raw := range [][]byte{t.RawArgs, t.Params} {
		if files := editors.Files(t.Name, []byte(text(raw))); len(files) > 0 {
			return files[:1]
		}
	}
	return nil
}
