package prompt

import (
	"crypto/sha256"
	_ "embed" // the instructions
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// version is the version of the instructions and of the form of the material.
const version = 2

// maxTokensMark is replaced by the limit everywhere in instructions.
const maxTokensMark = "{{max tokens}}"

var (
	//go:embed task.md
	task string
	// material says how the span is marked as data. It is never replaced.
	//go:embed material.md
	material string
)

// Mode says whether a text extends or replaces the default instructions.
type Mode string

// The modes. An empty Mode is Extend.
const (
	Extend  Mode = "extend"
	Replace Mode = "replace"
)

// Instructions say what a summary must keep. The zero value is the default.
type Instructions struct {
	Text string
	Mode Mode
}

// Validate returns an *eventlog.InvalidError if the mode is unknown, or if the text that should replace the default
// is empty.
func (i Instructions) Validate() error {
	switch {
	case i.Mode != "" && i.Mode != Extend && i.Mode != Replace:
		return &eventlog.InvalidError{Field: "instructions.mode", Reason: fmt.Sprintf("%q is neither %s nor %s", i.Mode, Extend, Replace)}
	case i.Mode == Replace && strings.TrimSpace(i.Text) == "":
		return &eventlog.InvalidError{Field: "instructions.text", Reason: "must not be empty where it replaces the default"}
	default:
		return nil
	}
}

// System returns the system prompt for a summary of at most maxTokens.
func (i Instructions) System(maxTokens uint64) string {
	return strings.ReplaceAll(i.text(), maxTokensMark, strconv.FormatUint(maxTokens, 10))
}

// Fingerprint identifies instructions: it is the same for all with the same system prompt, apart from the limit.
func (i Instructions) Fingerprint() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%s", version, i.text()))
	return hex.EncodeToString(sum[:8])
}

func (i Instructions) text() string {
	own := strings.TrimSpace(i.Text)
	switch {
	case i.Mode == Replace:
		return own + "\n\n" + material
	case own == "":
		return task + "\n" + material
	default:
		return task + "\nBesides:\n\n" + own + "\n\n" + material
	}
}
