package transcript

import (
	"context"
	"io"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Harness is the registry entry of a harness: all that the rest of the program needs to know about it. A
// field that does not apply to the harness is nil or empty.
type Harness struct {
	// Name is also the name of its folder and of its page in docs/harness.
	Name string
	// Aliases are other names that users know it by; LabelHarness holds one of the names.
	Aliases []string
	// Detect recognises a file by the paths and types of its first records. It must not accept files of other
	// harnesses.
	Detect func(Probe) bool
	// Instead recognises a file that the harness writes next to its transcripts, and returns a text that says which
	// file to import instead; "" for every other file.
	Instead func(Probe) string
	// Read reads a transcript: the same one for the same bytes. Damage gives a warning with the line. The error is a
	// *FormatError, or the input's own.
	Read func(io.Reader) (Transcript, error)
	// Write is nil if the harness cannot resume from its files alone.
	Write Writer
	// NotKept lists everything that may be missing in a file that is written again.
	NotKept []NotKept
	// Database is set if the harness stores its sessions in a database.
	Database *Database
	// Folder returns those files of a folder with this name that may together be one transcript, in order;
	// each is one record.
	Folder func(name string, files []string) []string
	// Boundary returns what the harness shows the model after a compaction that it wrote; ok is false for compactions
	// of other harnesses. If nil, the harness shows the summary, and then the kept messages.
	Boundary func(*eventlog.Compaction) (b Boundary, ok bool)
	// LabelUnseen is a label of messages that are in the file, but that the harness shows to no model.
	LabelUnseen string
	// Sent returns a message as the harness sends it to the model, with the words that the harness puts around it; ok
	// is false if it adds none.
	Sent func(eventlog.Event, *eventlog.Message) (e eventlog.Event, ok bool)
	// Branches is set if files keep messages of abandoned branches.
	Branches *Branches
	// Subagents is set if transcripts of subagents are files of their own.
	Subagents *Subagents
}

// Boundary is what a harness shows the model after a compaction.
type Boundary struct {
	// Blocks replace all that was dropped; empty if the log does not have them.
	Blocks []eventlog.Block
	// Last is set if Blocks come after the kept messages instead of before them.
	Last bool
}

// Branches finds the messages that a harness no longer shows, because it went on without them.
type Branches struct {
	// Left returns these messages, by id, of the events.
	Left func([]eventlog.Event) map[string]bool
	// Follows reports whether an event may change the result of Left for the messages before it.
	Follows func(eventlog.Event) bool
}

// Subagents recognises transcripts of subagents, and the calls that began them.
type Subagents struct {
	// Is reports whether a session is a subagent's.
	Is func(Session) bool
	// Prompt returns the prompt of the subagent that a call begins, which is the subagent's first message; ""
	// if the call begins none.
	Prompt func(eventlog.ToolCall) string
}

// Database is a file that must be read through Open, because its pages are not in the order of the records.
type Database struct {
	// Magic is the beginning of the file.
	Magic string
	// Open returns the input for Harness.Read: the records of a database of size bytes, with those in the write-ahead
	// log next to it, which may be nil. It runs nothing that the database contains. A *FormatError says that the
	// database is not the harness's. warn is called if damage ends the reading.
	Open func(ctx context.Context, in io.ReaderAt, size int64, log io.ReaderAt, warn func(string)) io.ReadCloser
}

// Named reports whether it is one of the harness's names.
func (h Harness) Named(name string) bool { return h.Name == name || slices.Contains(h.Aliases, name) }

// Owns reports whether a session was read from a file of the harness.
func (h Harness) Owns(s Session) bool { return h.Named(s.Labels[LabelHarness]) }

// NotKept is one thing in a harness's files that its reader omits on purpose. Each harness has a table of these,
// which lists all that may be missing in a file that is written again.
type NotKept struct {
	// Entry is the kind of entry that has it. "*" is every kind, and a "*" at the end is every kind with that prefix.
	Entry string
	// Field is the path of the member, such as "message.usage". "[]" in it is every element of a list. Empty is the
	// entry as a whole.
	Field  string
	Reason string
}

// FieldsOf returns the rows of a table about fields of entries of the kind.
func FieldsOf(table []NotKept, kind string) []NotKept {
	var fields []NotKept
	for _, row := range table {
		if row.Field != "" && row.Covers(kind) {
			fields = append(fields, row)
		}
	}
	return fields
}

// Drops reports whether a table says that entries of the kind are omitted as a whole.
func Drops(table []NotKept, kind string) bool {
	return slices.ContainsFunc(table, func(row NotKept) bool { return row.Field == "" && row.Covers(kind) })
}

// Covers reports whether the row is about entries of the kind.
func (n NotKept) Covers(kind string) bool {
	if prefix, ok := strings.CutSuffix(n.Entry, "*"); ok {
		return strings.HasPrefix(kind, prefix)
	}
	return n.Entry == kind
}
