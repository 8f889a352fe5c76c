package pi

import (
	"bytes"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// write writes a transcript as a session file. Branches that it was read with are where
// they were; conversations of subagents, which pi keeps none of, are left out with a
// warning.
func write(out io.Writer, t transcript.Transcript, o transcript.WriteOptions) (transcript.WriteReport, error) {
	w := &fileWriter{written: map[string]bool{}}
	var main transcript.Session
	if len(t.Sessions) > 0 {
		main = t.Sessions[0]
	}
	entries := append([]jsontext.Value{w.header(main, o)}, w.session(main)...)
	left, added := 0, 0
	if transcript.EnvelopesOf(Name, main).Session == "" {
		added = 1 // the file that was read had no header
	}
	if len(t.Sessions) > 1 {
		for _, s := range t.Sessions[1:] {
			if where := s.Labels[labelEntries]; where != "" {
				entries = merge(entries, w.session(s), where, added)
			} else {
				left++
			}
		}
	}
	if left > 0 {
		w.report.Warn("other conversations of the transcript, which have files of their own in pi, are left out")
	}
	var file bytes.Buffer
	for _, e := range entries {
		file.Write(e)
		file.WriteByte('\n')
	}
	w.report.Entries = len(entries)
	return w.report.Finish(out, file.Bytes())
}

// merge puts a branch's entries where they were, after so many entries that were added; the
// last entry stays the last.
func merge(entries, own []jsontext.Value, where string, added int) []jsontext.Value {
	at := positions(where, len(own))
	out := make([]jsontext.Value, 0, len(entries)+len(own))
	rest := entries
	for i, e := range own {
		for len(rest) > 1 && i < len(at) && len(out) < at[i]+added {
			out, rest = append(out, rest[0]), rest[1:]
		}
		out = append(out, e)
	}
	return append(out, rest...)
}

type fileWriter struct {
	report transcript.WriteReport
	// written are the ids of the events that are in the file, of all sessions.
	written map[string]bool
	old     bool // the file is of version 1, where compactions name lines
}

func (w *fileWriter) header(s transcript.Session, o transcript.WriteOptions) jsontext.Value {
	id := s.Labels[transcript.LabelSessionID]
	if id == "" {
		id = transcript.SessionID(s)
	}
	r := renderer{}
	began := r.at(&eventlog.Event{})
	for i := range s.Events {
		if !s.Events[i].Time.IsZero() {
			began = s.Events[i].Time
			break
		}
	}
	v := header(id, o.Directory(s.Labels), string(transcript.Stamp(began)), "parentSession", transcript.Optional(s.Labels[transcript.LabelParentSession]))
	raw := w.amend(v, transcript.EnvelopesOf(Name, s).Session)
	if o.SessionID != "" {
		// What another session was called must not be resumed under its name.
		raw = w.amend(raw, `{"set":{"id":`+transcript.Quote(o.SessionID)+`}}`)
	}
	version, stated := transcript.MemberOf(raw, "version")
	w.old = !stated || string(version) == "1"
	return raw
}

// versioned is a new entry for the file: in version 1 entries have no ids, and one without
// a parent would begin again for the reader.
func (w *fileWriter) versioned(raw []byte) jsontext.Value {
	if !w.old {
		return raw
	}
	return w.amend(raw, `{"del":["id","parentId"]}`)
}

// amend adds to an entry what was kept of it.
func (w *fileWriter) amend(base []byte, difference string) jsontext.Value {
	if difference == "" {
		return base
	}
	raw, err := transcript.Amend(base, []byte(difference))
	if err != nil {
		w.report.Warn("what was kept of an entry does not fit it and is left out: %v", err)
		return base
	}
	return raw
}

// fitting reports whether a custom event's JSON can be in a file as an entry.
func fitting(raw string) bool {
	_, ok := transcript.MemberOf([]byte(raw), "type")
	return ok && transcript.Valid([]byte(raw))
}

// own reports whether a compaction's marker is pi's.
func own(c *eventlog.Compaction) bool {
	var native struct {
		Type    transcript.Word `json:"type"`
		Summary jsontext.Value  `json:"summary"`
		Index   jsontext.Value  `json:"firstKeptEntryIndex"`
		First   jsontext.Value  `json:"firstKeptEntryId"`
	}
	return transcript.Decode([]byte(c.NativeJSON), &native) == nil && // a store takes any bytes
		native.Type == "compaction" && len(native.Summary)+len(native.Index)+len(native.First) > 0
}

// replaced are the entries that a reader kept whole beside an event made of them,
// by the event's id.
func replaced(s transcript.Session) map[string]string {
	all := map[string]string{}
	for id, c := range transcript.Held(Name, s.Events) {
		if fitting(c.JSON) {
			all[id] = transcript.Compact([]byte(c.JSON))
		}
	}
	return all
}

// cutType recognises pi's own custom events.
func cutType(kind string) (rest string, mine bool) {
	return strings.CutPrefix(strings.TrimPrefix(kind, "harness."), Name+".")
}

// isReplacement reports whether the custom event holds the entry of another event,
// which was written from it.
func (w *sessionWriter) isReplacement(e *eventlog.Event, kind string) bool {
	id, besides := strings.CutSuffix(strings.TrimRight(e.ID, "+"), "/"+kind)
	_, written := w.native[id]
	return besides && written
}
