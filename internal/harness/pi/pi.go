// Package pi reads the session files of pi: JSON Lines, linear in version 1 and a
// tree in version 3. docs/harness/pi.md describes the format and the mapping.
package pi

import (
	"io"
	"strconv"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "pi"

// redacted stands in place of ids that a redaction pass took out.
const redacted = "REDACTED"

// Detect recognises a session file by its first records.
func Detect(p transcript.Probe) bool {
	if p.Is("type", "session") && p.Has("type", "id", "cwd") {
		return true
	}
	return p.Is("message.role", "toolResult", "bashExecution") && p.Has("type", "timestamp", "message.role") && !p.Has("uuid")
}

type reader struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	count   int    // records so far
	sent    []sent // what became events
}

// sent is a record that became an event, for compactions to name.
type sent struct {
	index int    // of the record
	entry string // the record's own id
	event string
}

// Read reads a whole session file.
func Read(in io.Reader) (transcript.Transcript, error) {
	out := transcript.NewBuilder(Name)
	r := &reader{out: out, session: out.Session("")}
	r.session.Label(transcript.LabelHarness, "pi")
	if err := transcript.ReadLines(in, out.Warn, r.record); err != nil {
		return transcript.Transcript{}, err
	}
	return out.Finish()
}

func (r *reader) record(line transcript.Record) error {
	r.count++
	entry := transcript.Entry{Line: line.Line, Native: line.JSON, ID: transcript.PositionID(line)}
	var rec record
	if err := line.Decode(&rec); transcript.Malformed(err) {
		r.count--
		return err
	} else if err != nil {
		r.unreadable(entry, err)
		return nil
	}
	r.line(entry, &rec)
	return nil
}

func (r *reader) line(entry transcript.Entry, rec *record) {
	entry.Time = transcript.ParseTime(rec.Timestamp)
	if rec.ID != "" && rec.ID != redacted && rec.Type != "session" {
		entry.ID = rec.ID
	}
	switch rec.Type {
	case "session":
		r.session.Label(transcript.LabelSessionID, rec.ID)
		if rec.Version > 0 {
			r.session.Label(transcript.LabelVersion, strconv.Itoa(rec.Version))
		}
		return
	case "message":
		if rec.Message == nil {
			r.session.Keep(entry, "message-without-content")
			return
		}
		if err := r.message(entry, rec.Message); err != nil {
			r.unreadable(entry, err)
		}
	case "custom_message":
		if err := r.user(entry, rec.Content, true); err != nil {
			r.unreadable(entry, err)
		}
	case "compaction":
		r.compaction(entry, rec)
	case "model_change", "thinking_level_change", "label", "session_info":
		r.out.Skip(rec.Type)
	default:
		r.session.Keep(entry, rec.Type)
	}
}

func (r *reader) unreadable(entry transcript.Entry, err error) {
	r.out.Warn(entry.Line, "unexpected shape, kept as a custom event: %v", err)
	r.session.Custom(entry, "unreadable")
}

func (r *reader) compaction(entry transcript.Entry, rec *record) {
	body := &eventlog.Compaction{Summary: rec.Summary, PreTokens: rec.TokensBefore, NativeJSON: string(entry.Native)}
	keeping := false
	for _, s := range r.sent {
		keeping = keeping || (rec.FirstKeptID != "" && s.entry == rec.FirstKeptID) ||
			(rec.FirstKeptIndex != nil && s.index >= *rec.FirstKeptIndex)
		if keeping {
			body.KeptEventIDs = append(body.KeptEventIDs, s.event)
		}
	}
	entry.Body, entry.Native = body, nil
	r.session.Append(entry)
}
