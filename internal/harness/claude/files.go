package claude

import (
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// editors are the tools that change the file they are given.
var editors = map[string]bool{"Edit": true, "MultiEdit": true, "Write": true, "NotebookEdit": true}

// files knows which open calls would change which file.
type files struct{ paths map[string]string }

// changed returns the files that the results among the blocks say were changed,
// one a line.
func (f *files) changed(blocks []eventlog.Block) string {
	var changed []string
	for _, b := range blocks {
		switch b := b.(type) {
		case eventlog.ToolCall:
			if !editors[b.Name] {
				continue
			}
			var input struct {
				File     string `json:"file_path"`
				Notebook string `json:"notebook_path"`
			}
			if transcript.Decode([]byte(b.Arguments), &input) != nil {
				continue
			}
			if f.paths == nil {
				f.paths = map[string]string{}
			}
			f.paths[b.CallID] = input.File + input.Notebook
		case eventlog.ToolResult:
			path := f.paths[b.CallID]
			delete(f.paths, b.CallID)
			if !b.IsError {
				changed = append(changed, path)
			}
		}
	}
	return transcript.FilesChanged(changed)
}
