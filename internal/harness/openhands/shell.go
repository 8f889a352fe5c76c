package openhands

import (
	"slices"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// shell is the metadata of a command's observation.
type shell struct {
	// ExitCode is -1 for a command that still runs.
	ExitCode int `json:"exit_code"`
	// Prefix and Suffix are around the output in what the model reads: that the command still runs, for instance,
	// and what may be done about it.
	Prefix transcript.Word `json:"prefix"`
	Suffix transcript.Word `json:"suffix"`
}

// succeeded is the suffix of most commands, which adds nothing to a result without an error.
const succeeded = "\n[The command completed with exit code 0.]"

func (s shell) failed() bool { return s.ExitCode > 0 }

// around adds to an output what the model reads before and after it.
func (s shell) around(output []eventlog.Block) []eventlog.Block {
	if s.Prefix != "" {
		output = slices.Insert(output, 0, eventlog.Block(eventlog.Text{Text: string(s.Prefix)}))
	}
	if s.Suffix != "" && s.Suffix != succeeded {
		output = append(output, eventlog.Text{Text: string(s.Suffix)})
	}
	return output
}
