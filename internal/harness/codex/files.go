package codex

import (
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// filesChanged returns the files that a patch is about, one a line.
func filesChanged(c eventlog.ToolCall) string {
	if c.Name != "apply_patch" {
		return ""
	}
	return transcript.FilesChanged(transcript.PatchFiles(inputOf(c.Arguments)))
}

// inputOf returns the text that a custom tool was given.
func inputOf(arguments string) string {
	var a struct {
		Input string `json:"input"`
	}
	if transcript.Decode([]byte(arguments), &a) != nil {
		return ""
	}
	return a.Input
}
