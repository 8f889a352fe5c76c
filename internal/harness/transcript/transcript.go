// Package transcript is the common part of the readers and writers of all harnesses: the result type, the builder
// that makes sessions of entries that the log admits, the reading of JSON records with line numbers, and the
// differences with which a writer restores an entry of the harness's own file.
package transcript

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Transcript is the result of reading one file.
type Transcript struct {
	// Harness is the name of the reader that read it.
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
	// Suffix distinguishes the sessions of one file. It is empty for the main one, "sidechain-1" and so on for
	// conversations of subagents, and "2" and so on if a file has several independent ones.
	Suffix string
	// ParentCallID is the tool call of the main session that began this sidechain; empty if the session is no
	// sidechain, or if the file does not say.
	ParentCallID string
	// Events have an ID and a Body, and a Time if the file has one; the log assigns Seq and Turn. Head.Admit
	// accepts them in batches of any size.
	Events []eventlog.Event
	Labels map[string]string
	// Envelopes have what the file says beyond the events. A session without them is written like a session of
	// another harness.
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

// The labels that readers set. Usage labels are on assistant messages. If one reply is several events, those of the
// last event that has them count for the reply.
const (
	// LabelInjected is "true" on messages that the harness inserted, not the user or the model.
	LabelInjected = eventlog.LabelInjected
	// LabelInjectedBlocks lists the blocks that the harness inserted into a human's message.
	LabelInjectedBlocks = eventlog.LabelInjectedBlocks
	// LabelStanding names the subject of an injected message. A newer one with the same name replaces it.
	LabelStanding = eventlog.LabelStanding
	// LabelReplaced is "true" on messages that have no entry of their own in the file: a compaction lists
	// them as the rest of a conversation that the file does not have.
	LabelReplaced = "harness.replaced"
	// LabelPromptTokens is the size of the request's whole prompt, including cached tokens.
	LabelPromptTokens = "usage.prompt_tokens"
	// LabelCacheReadTokens is the size of the part of the prompt that was read from the cache.
	LabelCacheReadTokens = "usage.cache_read_tokens"
	// LabelCacheWriteTokens is the size of the part of the prompt that was written to the cache.
	LabelCacheWriteTokens = "usage.cache_write_tokens"
	// LabelOutputTokens is how many tokens the model wrote.
	LabelOutputTokens = "usage.output_tokens"
	// LabelHarness is the session's format: a harness's name or a more specific alias of it.
	LabelHarness = "harness.format"
	// LabelSessionID is the harness's own id of the session.
	LabelSessionID = "harness.session_id"
	// LabelWorkingDirectory is the directory in which the session ran.
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
	// LabelFilesChanged, on an event that says that files were changed, has their paths, one on each line.
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

// cut truncates a text to this many bytes, and marks that with an ellipsis.
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

// The API's limits on the labels of an event or a session. Lengths are in characters.
const (
	MaxLabels     = 64
	MaxLabelKey   = 128
	MaxLabelValue = 1024
)
