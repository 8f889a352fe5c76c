package transcript

import (
	"context"
	"io"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Harness is the registry entry of a harness: all that the rest of the program asks about
// it. What a harness has nothing of is nil or empty.
type Harness struct {
	// Name is that of its folder and of its page in docs/harness.
	Name string
	// Aliases are other names that users know it by; LabelHarness holds one of the names.
	Aliases []string
	// Detect recognises a file by the paths and types of its first records, and takes none
	// of another harness.
	Detect func(Probe) bool
	// Instead says of a file that the harness writes beside its transcripts which one to read; empty
	// of all others.
	Instead func(Probe) string
	// Read gives the same transcript for the same bytes. Damage is a warning with its line;
	// the error is a *FormatError, or the input's own.
	Read func(io.Reader) (Transcript, error)
	// Write is nil where the harness does not keep enough on disk to resume from.
	Write Writer
	// NotKept is all that a file written again may lack.
	NotKept []NotKept
	// Database is set where the harness keeps its sessions in one.
	Database *Database
	// Folder are, of the files in a folder of this name, those that may be one transcript, a record
	// each, in its order.
	Folder func(name string, files []string) []string
	// Boundary is how the harness goes on after a compaction that it wrote; ok is false for
	// one of another. Nil: with the summary, before what was kept.
	Boundary func(*eventlog.Compaction) (b Boundary, ok bool)
	// LabelUnseen is on messages that are in the file and that the harness shows to no model.
	LabelUnseen string
	// Sent is a message as the harness sends it, where it puts words around it; ok is false for
	// all others.
	Sent func(eventlog.Event, *eventlog.Message) (e eventlog.Event, ok bool)
	// Branches is set where messages stay in the file that the harness went on without.
	Branches *Branches
	// Subagents is set where transcripts of subagents are files of their own.
	Subagents *Subagents
}

// Boundary is how a harness goes on after a compaction.
type Boundary struct {
	// Blocks take the place of all that was dropped; empty if the log does not hold them.
	Blocks []eventlog.Block
	// Last is set where they follow what was kept, rather than come before it.
	Last bool
}

// Branches says which messages a harness dropped.
type Branches struct {
	// Left are those among the events, by id.
	Left func([]eventlog.Event) map[string]bool
	// Follows reports whether an event may change which messages before it are left.
	Follows func(eventlog.Event) bool
}

// Subagents recognises transcripts of subagents, and what began them.
type Subagents struct {
	// Is reports whether a session is a subagent's.
	Is func(Session) bool
	// Prompt is the prompt of the subagent that a call begins, which is its first message;
	// "" if it begins none.
	Prompt func(eventlog.ToolCall) string
}

// Database is a file that is read through Open, since its pages are not read in their order.
type Database struct {
	// Magic begins the file.
	Magic string
	// Open gives what Read takes in the place of a database of so many bytes and the
	// write-ahead log beside it, or nil. Nothing in the database is run. Its *FormatError
	// says that it is none of the harness; warn is given damage that ends it.
	Open func(ctx context.Context, in io.ReaderAt, size int64, log io.ReaderAt, warn func(string)) io.ReadCloser
}

// Named reports whether it is one of the harness's names.
func (h Harness) Named(name string) bool { return h.Name == name || slices.Contains(h.Aliases, name) }

// Owns reports whether a session was read from a file of the harness.
func (h Harness) Owns(s Session) bool { return h.Named(s.Labels[LabelHarness]) }

// NotKept is one thing in a harness's files that its reader leaves out on purpose.
// Each harness has a table of them, which is all that a file written again may
// lack.
type NotKept struct {
	// Entry is the kind of entry that it is in; "*" for every kind, and a "*" at
	// the end for every kind with that beginning.
	Entry string
	// Field is the path of the member, such as "message.usage"; "[]" goes into every
	// element of a list. Empty: the entry as a whole.
	Field  string
	Reason string
}

// FieldsOf are the rows of a table about fields of entries of the kind.
func FieldsOf(table []NotKept, kind string) []NotKept {
	var fields []NotKept
	for _, row := range table {
		if row.Field != "" && row.Covers(kind) {
			fields = append(fields, row)
		}
	}
	return fields
}

// Drops reports whether a table has entries of the kind left out as a whole.
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
