package render

import (
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// openingText is the user's first turn in a conversation that begins with the assistant, for providers that require
// one.
const openingText = "[contextd: the conversation begins with the assistant]"

const speakerUser = "user"

// reminderText is how a system message is shown to a provider that takes none in this place.
func reminderText(text string) string {
	return "<system-reminder>\n" + text + "\n</system-reminder>"
}

// turns splits a context's fragments into the system prompt and the rest. The system prompt is the leading run of
// lasting system messages; in the rest, system messages become the user's. If the rest does not begin with the user, a
// first turn with the JSON opening is added.
func turns(fragments []Fragment, opening string) (system, rest []Fragment) {
	n := 0
	for n < len(fragments) && fragments[n].Role == eventlog.RoleSystem && !fragments[n].passing() {
		n++
	}
	system, fragments = fragments[:n], fragments[n:]
	rest = make([]Fragment, 0, len(fragments)+1)
	if len(fragments) > 0 && fragments[0].Role != eventlog.RoleSystem && fragments[0].Speaker != speakerUser {
		rest = append(rest, Fragment{Message: openingMessage(), Speaker: speakerUser, JSON: []byte(opening)})
	}
	for _, f := range fragments {
		if f.Role == eventlog.RoleSystem {
			at := f.place(0)
			f.Speaker, f.JSON = speakerUser, f.Elsewhere
			f.Conversions = append(slices.Clone(f.Conversions), Conversion{Seq: at.Seq, Block: at.Block, Kind: Moved, What: "system message"})
		}
		rest = append(rest, f)
	}
	return system, rest
}

func openingMessage() Message {
	return Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: openingText}}, Origin: Summary, Cause: "the provider's order of turns"}
}
