package chat

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// The texts of mini-swe-agent if its model calls no functions: a command is between fences, and the result
// begins with its return code.
var (
	fenced     = regexp.MustCompile("(?s)```(?:bash|mswea_bash_command)\\s*\n(.*?)\n```")
	returnCode = regexp.MustCompile(`^<returncode>(-?\d+)</returncode>`)
)

// fencedCall makes a call of the one command between fences in a text; the text around it stays. If there is
// none, or more than one, the agent runs nothing and ok is false.
func fencedCall(blocks []eventlog.Block) ([]eventlog.Block, bool) {
	if len(blocks) == 0 {
		return blocks, false
	}
	last := len(blocks) - 1 // reasoning may come before
	text, ok := blocks[last].(eventlog.Text)
	if !ok {
		return blocks, false
	}
	found := fenced.FindAllStringSubmatchIndex(text.Text, 2)
	if len(found) != 1 {
		return blocks, false
	}
	at := found[0]
	out := blocks[:last:last]
	if around := text.Text[:at[0]] + strings.TrimLeft(text.Text[at[1]:], "\n"); strings.TrimSpace(around) != "" {
		out = append(out, eventlog.Text{Text: around})
	}
	return append(out, eventlog.ToolCall{Name: "bash", Arguments: transcript.Wrap("command", text.Text[at[2]:at[3]])}), true
}

// ranFenced reports whether a user message is what such a command printed, in a list that does not say of which agent it
// is: the command stays text there.
func ranFenced(reply string, blocks []eventlog.Block) bool {
	text, _ := first(blocks)
	return returnCode.MatchString(text) && fenced.MatchString(reply)
}

// failedText reports whether a result says by its text that a command failed.
func failedText(blocks []eventlog.Block) bool {
	text, _ := first(blocks)
	m := returnCode.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	code, err := strconv.Atoi(m[1])
	return err != nil || code != 0
}
