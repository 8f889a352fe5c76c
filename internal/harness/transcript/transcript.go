// Package transcript has what the readers and writers of all harnesses share: the result type, the builder
// that turns entries into sessions which the log admits, the reading of JSON records with their line numbers,
// and the differences from which a writer restores an entry of the harness's own file.
package transcript

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Transcript is what a reader made of one file.
type Transcript struct {
	// Harness names the reader that read it.
	Harness  string
	Sessions []Session
	Warnings []Warning
	// DroppedDuplicates counts entries that repeat an earlier one with the same id and content.
	DroppedDuplicates int
	// RenamedIDs counts event and call ids that got a suffix, because the file used them twice for different
	// things.
	RenamedIDs int
	// Compactions counts the compaction boundaries of all sessions.
	Compactions int
}

// Session is one conversation of a transcript.
type Session struct {
	// Suffix distinguishes the sessions of one file: empty for the main one, "sidechain-1"
	// and so on for conversations of subagents, "2" and so on where a file holds several
	// independent ones.
	Suffix string
	// ParentCallID is the tool call of the main session that began this sidechain; empty if the session is
	// none, or if the file does not say.
	ParentCallID string
	// Events have an ID and a Body, and a Time if the file has one; the log assigns Seq and Turn. Head.Admit
	// accepts them in batches of any size.
	Events []eventlog.Event
	Labels map[string]string
	// Envelopes hold what the file says beyond the events. A session without them is written like one that
	// another harness began.
	Envelopes []Envelope
}

// Sidechain reports whether the session is a subagent's, begun by the main one of its
// transcript.
func (s Session) Sidechain() bool {
	return s.ParentCallID != "" || strings.HasPrefix(s.Suffix, "sidechain-")
}

// Texts returns the texts among the blocks.
func Texts(blocks []eventlog.Block) (texts []string) {
	for _, b := range blocks {
		if t, ok := b.(eventlog.Text); ok {
			texts = append(texts, t.Text)
		}
	}
	return texts
}

// Warning is something in the file that could not be read unchanged.
type Warning struct {
	// Line counts from 1; 0 if the warning concerns the file as a whole.
	Line    int
	Message string
}

// String puts the line before the message.
func (w Warning) String() string {
	if w.Line == 0 {
		return w.Message
	}
	return fmt.Sprintf("line %d: %s", w.Line, w.Message)
}

// Labels that readers set. Usage labels are on assistant messages; where one
// reply is several events, the last event that has them counts for the reply.
const (
	// LabelInjected is "true" on messages that the harness put in, rather than the
	// user or the model.
	LabelInjected = eventlog.LabelInjected
	// LabelInjectedBlocks lists the blocks of a human's message that the harness put in.
	LabelInjectedBlocks = eventlog.LabelInjectedBlocks
	// LabelStanding names what an injected message is about; a newer one with the same name replaces it.
	LabelStanding = eventlog.LabelStanding
	// LabelReplaced is "true" on messages that have no entry of their own in the file: a compaction lists
	// them as the rest of a conversation that the file does not have.
	LabelReplaced = "harness.replaced"
	// LabelPromptTokens is the whole prompt of the request, cached tokens included.
	LabelPromptTokens = "usage.prompt_tokens"
	// LabelCacheReadTokens is the part of the prompt that the cache served.
	LabelCacheReadTokens = "usage.cache_read_tokens"
	// LabelCacheWriteTokens is the part of the prompt that was written to the cache.
	LabelCacheWriteTokens = "usage.cache_write_tokens"
	// LabelOutputTokens is what the model wrote.
	LabelOutputTokens = "usage.output_tokens"
	// LabelHarness is the session's format: a harness's name or a more specific alias of it.
	LabelHarness = "harness.format"
	// LabelSessionID is the harness's own id of the session.
	LabelSessionID = "harness.session_id"
	// LabelWorkingDirectory is where the session ran.
	LabelWorkingDirectory = "harness.cwd"
	// LabelParentSession is the harness's id of the session from which this one began: its parent, if it is a
	// subagent's, or the session of which it is a fork.
	LabelParentSession = "harness.parent_session_id"
	// LabelSubagentSession, on a tool's result, is the harness's id of the session in which a subagent
	// produced it.
	LabelSubagentSession = "harness.subagent_session_id"
	// LabelVersion is the version of the harness.
	LabelVersion = "harness.version"
	// LabelGitBranch is the branch that was checked out at that time.
	LabelGitBranch = "harness.git_branch"
	// LabelFilesChanged is on the event that says that files were changed, and
	// holds their paths, one a line.
	LabelFilesChanged = "harness.files_changed"
)

// FormatError says that the input is not in the reader's format.
type FormatError struct {
	Harness string // empty if no reader knows the input
	Reason  string
}

func (e *FormatError) Error() string {
	if e.Harness == "" {
		return "transcript: " + e.Reason
	}
	return "transcript of " + e.Harness + ": " + e.Reason
}

// Tally counts, by type, entries that a reader omits on purpose.
type Tally map[string]int

// maxKinds is how many types are counted separately; all further ones count as "others".
const maxKinds = 200

func (t Tally) count(kind string) {
	kind = cut(Clean(kind), 100)
	if t[kind] == 0 && len(t) >= maxKinds {
		kind = "others"
	}
	t[kind]++
}

// cut truncates a text to so many bytes and marks that with an ellipsis.
func cut(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes], "") + "…"
}

// String lists the types in order with their counts.
func (t Tally) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(t)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, t[k]))
	}
	return strings.Join(parts, ", ")
}

// The limits that the API sets to the labels of an event or a session; lengths are in characters.
const (
	MaxLabels     = 64
	MaxLabelKey   = 128
	MaxLabelValue = 1024
)
