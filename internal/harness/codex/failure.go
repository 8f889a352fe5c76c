package codex

import (
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// statusLines are how the tools write a command's exit code at the head of their
// output.
var statusLines = []string{"Exit code: ", "Process exited with code "}

// statusWithin is how much of an output may come before the exit code.
const statusWithin = 400

// exitedWithError reports whether an output says that its command failed. Codex
// has no other sign of it.
func exitedWithError(output string) bool {
	if strings.HasPrefix(output, "{") {
		var o struct {
			Metadata struct {
				ExitCode int `json:"exit_code"`
			} `json:"metadata"`
		}
		return transcript.Decode([]byte(output), &o) == nil && o.Metadata.ExitCode != 0
	}
	if strings.HasPrefix(output, "apply_patch verification failed") {
		return true
	}
	head := output[:min(len(output), statusWithin)]
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(line)
		if line == "Output:" {
			return false
		}
		for _, s := range statusLines {
			if code, ok := strings.CutPrefix(line, s); ok {
				return code != "0"
			}
		}
	}
	return false
}
