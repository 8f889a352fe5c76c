package codex

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// patchHeads are how a patch names the files that it is about.
var patchHeads = []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "}

// filesChanged returns the files that a patch is about, one a line.
func filesChanged(c eventlog.ToolCall) string {
	if c.Name != "apply_patch" {
		return ""
	}
	var files []string
	for l := range strings.Lines(inputOf(c.Arguments)) {
		for _, head := range patchHeads {
			if file, ok := strings.CutPrefix(strings.TrimRight(l, "\r\n"), head); ok && !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	all := strings.Join(files, "\n")
	if utf8.RuneCountInString(all) > transcript.MaxLabelValue {
		return ""
	}
	return all
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
