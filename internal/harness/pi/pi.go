// Package pi reads and writes the session files of pi: JSON Lines, a list of entries in version 1 and a tree in
// version 3. docs/harness/pi.md describes the format and the mapping.
package pi

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// Name of the harness.
const Name = "pi"

const (
	// redacted replaces ids in files from which ids were removed.
	redacted    = "REDACTED"
	sessionType = "session"
)

// Harness is pi.
var Harness = transcript.Harness{
	Name: Name, Detect: detect, Read: read, Write: write, NotKept: notKept, Boundary: boundary, LabelUnseen: labelStopReason,
}

// detect recognises a session file by its first records. Other programs begin sessions with a record of the
// same type; only pi's has a time called timestamp.
func detect(p transcript.Probe) bool {
	for _, r := range p.Records {
		if r["type"] == sessionType && r["id"] != "" && r["cwd"] != "" && r["timestamp"] != "" {
			return true
		}
	}
	return p.Is("message.role", "toolResult", "bashExecution") && p.Has("type", "timestamp", "message.role") && !p.Has("uuid")
}

type reader struct {
	out   *transcript.Builder
	lines []*line
}

// read reads a whole session file. The main session is the path from the root to the last entry, where the
// harness goes on. Every other leaf of the tree becomes a session with the whole path to it.
func read(in io.Reader) (transcript.Transcript, error) {
	r := &reader{out: transcript.NewBuilder(Name, in)}
	err := transcript.ReadLines(in, r.out.Warn, r.record)
	r.plant()
	r.lost()
	main := newBranch(r.out, "")
	headed := false
	for i := range r.lines {
		if l := r.lines[i]; l.rec.Type == sessionType && l.bad == nil && !headed {
			headed = true
			main.header(l)
		} else if l.rec.Type == sessionType && l.bad == nil {
			main.session.Record(l.entry, sessionType)
		}
	}
	all, _ := r.path(r.leaf())
	for _, i := range all {
		main.add(r.lines[i])
	}
	r.branches(main)
	return r.out.Finish(err)
}

func (r *reader) record(rec transcript.Record) {
	l := &line{index: len(r.lines), entry: transcript.Entry{Line: rec.Line, ID: transcript.PositionID(rec)}}
	rec.JSON = bytes.Clone(rec.JSON)
	if l.bad = transcript.Decode(rec.JSON, &l.rec); l.bad != nil {
		l.rec = record{}
	}
	l.entry.Native = rec.JSON
	l.entry.Time = transcript.ParseTime(l.rec.Timestamp)
	if l.rec.ID != "" && l.rec.ID != redacted && l.rec.Type != sessionType {
		l.entry.ID = l.rec.ID
	}
	r.lines = append(r.lines, l)
}

// lost warns of compactions whose first kept entry is not in the file.
func (r *reader) lost() {
	known := map[string]bool{"": true, redacted: true}
	for _, l := range r.lines {
		known[l.rec.ID] = true
	}
	for _, l := range r.lines {
		if l.rec.Type == "compaction" && !known[l.rec.FirstKeptID] {
			r.out.Warn(l.entry.Line, "what the compaction kept is not in the file: it begins with the entry %.100q", l.rec.FirstKeptID)
		}
	}
}

// branches makes a session for every leaf except the last.
func (r *reader) branches(main *branch) {
	leaf, n, left := r.leaf(), 0, 0
	for i := range r.lines {
		l := r.lines[i]
		if l.child || i == leaf || (l.rec.Type == sessionType && l.bad == nil) {
			continue
		}
		if n++; n > maxBranches {
			left++
			continue
		}
		b := newBranch(r.out, "branch-"+strconv.Itoa(n))
		b.session.CopyHeader(main.session)
		all, own := r.path(i)
		for _, j := range all {
			b.add(r.lines[j])
		}
		if text := runs(own); len(text) <= transcript.MaxLabelValue {
			b.session.Label(labelEntries, text)
		}
	}
	if n > 0 {
		r.out.Warn(0, "the session was continued from earlier entries: %s, each a session of its own", counted(n-left, "abandoned branch"))
	}
	if left > 0 {
		r.out.Warn(0, "%s were not read", counted(left, "further branch"))
	}
}

func counted(n int, what string) string {
	if n != 1 {
		what += "es"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// notKept is what a session file written again may lack.
var notKept = []transcript.NotKept{
	{Entry: "message", Field: "message.details", Reason: "what the tool shows the user: diffs and outputs once more; kept up to 1 KiB, where extensions have their state"},
	{Entry: "message", Field: "message.content[].partialJson", Reason: "left over from streaming; the arguments say the same"},
}

// detailsKept is how many bytes of a result's details are kept.
const detailsKept = 1 << 10

// omitted returns the fields of a message that are not kept.
func (m *message) omitted() []transcript.NotKept {
	from, to := 1, 1
	if m != nil && len(m.Details) > detailsKept {
		from = 0
	}
	if m != nil && m.Role == "assistant" {
		to = 2
	}
	return notKept[from:to]
}

// line is one record of the file, with its place in the tree.
type line struct {
	entry  transcript.Entry
	rec    record
	bad    error // why the record could not be decoded
	index  int   // of the record, from 0
	parent int   // index of the parent; -1 for none
	child  bool  // it has a child
	mine   bool  // a session has it already
}

// maxBranches is how many abandoned branches become sessions. The number is limited because each holds the
// whole path to its leaf.
const maxBranches = 32

// plant sets the parents. In version 1 each record follows the one before it. A parent must come before its
// children, so that there are no cycles. One that does not, or is not in the file, gives a warning, and the
// record follows the one before it.
func (r *reader) plant() {
	byID := map[string]int{}
	last := -1
	for i := range r.lines {
		l := r.lines[i]
		l.parent = last
		if l.rec.Type == sessionType && l.bad == nil {
			continue
		}
		last = i
		id := l.rec.ID
		twin, repeated := byID[id]
		known := id != "" && id != redacted
		switch parent, stated := l.parentID(); {
		case known && repeated && bytes.Equal(r.lines[twin].rec.ParentID, l.rec.ParentID):
			// The id is used twice: the second record follows the first.
			l.parent = twin
		case !stated || parent == redacted:
		case parent == "":
			l.parent = -1
		default:
			if at, ok := byID[parent]; ok {
				l.parent = at
			} else {
				r.out.Warn(l.entry.Line, "parent %q is not before it; it follows the previous entry", parent)
				r.replant(l)
			}
		}
		if l.parent >= 0 {
			r.lines[l.parent].child = true
		}
		if known {
			byID[id] = i
		}
	}
}

// replant changes the entry's own parentId to the one that plant set. pi stops at a missing parent, and never
// ends in a cycle, so that an entry that is written again must not name such a parent.
func (r *reader) replant(l *line) {
	parent := "null"
	if l.parent >= 0 && r.lines[l.parent].rec.ID != "" {
		parent = transcript.Quote(r.lines[l.parent].rec.ID)
	}
	native, err := transcript.Amend(l.entry.Native, []byte(`{"set":{"parentId":`+parent+`}}`))
	if err != nil {
		return // it is no object, and gives no event
	}
	l.entry.Native, l.rec.ParentID = native, jsontext.Value(parent)
}

// parentID returns the parent's id, empty for a root; stated is false if the record has none.
func (l *line) parentID() (id string, stated bool) {
	if len(l.rec.ParentID) == 0 {
		return "", false
	}
	id, isText := transcript.Text(l.rec.ParentID)
	return id, isText || string(l.rec.ParentID) == "null"
}

// path returns the indexes from the root to a leaf; own are those that no session has yet.
func (r *reader) path(leaf int) (all, own []int) {
	for i := leaf; i >= 0; i = r.lines[i].parent {
		all = append(all, i)
	}
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	for _, i := range all {
		if !r.lines[i].mine {
			own = append(own, i)
			r.lines[i].mine = true
		}
	}
	return all, own
}

// leaf returns the index of the file's last entry, where the harness goes on.
func (r *reader) leaf() int {
	for i := len(r.lines) - 1; i >= 0; i-- {
		if r.lines[i].rec.Type != sessionType || r.lines[i].bad != nil {
			return i
		}
	}
	return -1
}

// labelEntries, on a branch's session, is where in the file its own entries were: ranges of positions, such
// as "4-6,9-9".
const labelEntries = Name + ".entries"

func runs(indexes []int) string {
	var b strings.Builder
	for i := 0; i < len(indexes); {
		j := i
		for j+1 < len(indexes) && indexes[j+1] == indexes[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d-%d", indexes[i], indexes[j])
		i = j + 1
	}
	return b.String()
}

// positions parses ranges, and returns n positions at most.
func positions(text string, n int) []int {
	var all []int
	for run := range strings.SplitSeq(text, ",") {
		first, last, _ := strings.Cut(run, "-")
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		for i := from; err1 == nil && err2 == nil && i >= 0 && i <= to && len(all) < n; i++ {
			all = append(all, i)
		}
	}
	return all
}
