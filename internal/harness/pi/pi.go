// Package pi reads and writes the session files of pi: JSON Lines, linear in version
// 1 and a tree in version 3. docs/harness/pi.md describes the format and the
// mapping.
package pi

import (
	"bytes"
	"fmt"
	"io"
	"strconv"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// Name of the harness.
const Name = "pi"

const (
	// redacted is in place of ids that a redaction pass took out.
	redacted    = "REDACTED"
	sessionType = "session"
)

// Harness is pi.
var Harness = transcript.Harness{
	Name: Name, Detect: detect, Read: read, Write: write, NotKept: notKept, Boundary: boundary, LabelUnseen: labelStopReason,
}

// detect recognises a session file by its first records.
func detect(p transcript.Probe) bool {
	if p.Is("type", "session") && p.Has("type", "id", "cwd") {
		return true
	}
	return p.Is("message.role", "toolResult", "bashExecution") && p.Has("type", "timestamp", "message.role") && !p.Has("uuid")
}

type reader struct {
	out   *transcript.Builder
	lines []*line
}

// read reads a whole session file. The main session is the way to the last entry,
// which is where the harness goes on; each other end of the tree is a session of
// its own, with everything on the way to it.
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

// lost warns of what compactions kept and the file lacks.
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

// branches makes a session of every end of the tree but the last.
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

// left are the fields of a message that are not kept.
func (m *message) left() []transcript.NotKept {
	from, to := 1, 1
	if m != nil && len(m.Details) > detailsKept {
		from = 0
	}
	if m != nil && m.Role == "assistant" {
		to = 2
	}
	return notKept[from:to]
}
