package claude

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// importedBoundary writes a compaction that was read from records of the harness,
// and reports whether it was one.
func (s *sessionWriter) importedBoundary(e *eventlog.Event, c *eventlog.Compaction) bool {
	var native record
	if c.NativeJSON == "" || transcript.Decode([]byte(c.NativeJSON), &native) != nil {
		return false
	}
	raw := []byte(transcript.Compact([]byte(c.NativeJSON)))
	if native.IsCompactSummary {
		s.flushBetween()
		s.write(e.ID, raw)
		return true
	}
	switch native.Subtype {
	case boundarySubtype:
	case unreadSubtype:
		s.flushBetween()
		s.write(e.ID, raw)
		return true
	default:
		return false
	}
	s.write(e.ID, raw)
	s.flushBetween()
	d, ok := s.envelopes.Entries[e.ID]
	switch {
	case ok:
		base := s.around.summary(e, c.Summary)
		if summary, err := transcript.Amend(base, []byte(d)); err == nil {
			s.write(e.ID, summary)
			return true
		}
		s.lost["what records said besides their messages"]++
		fallthrough
	case c.Summary != "":
		event := *e
		event.ID, event.Time = native.UUID, transcript.OrEpoch(s.at)
		s.write(e.ID, s.around.summary(&event, c.Summary))
	}
	return true
}

// boundary writes a compaction of contextd's or of another harness: the marker, and
// the record that holds the summary. After a marker without a summary the harness would
// have nothing of the session left; it does not know the other, and goes on as before.
func (s *sessionWriter) boundary(e *eventlog.Event, c *eventlog.Compaction) {
	event := *e
	event.ID, event.Time = s.uuid(e.ID, 0), transcript.OrEpoch(s.at)
	anchor := s.around.summary(&event, c.Summary)
	var logical any
	parent, subtype := s.leaf(), unreadSubtype
	if c.Summary != "" {
		logical, parent, subtype = transcript.Optional(parent), "", boundarySubtype
	}
	s.write(e.ID, s.around.record("system", parent, "logicalParentUuid", logical, "subtype", subtype,
		"content", "Conversation compacted", "isMeta", false, "level", "info",
		"compactMetadata", s.metadata(c, uuidOf(anchor)), "uuid", event.ID, "timestamp", transcript.Stamp(event.Time)))
	if c.Summary != "" {
		s.write(e.ID, anchor)
	}
}

var triggerNames = map[eventlog.CompactionTrigger]transcript.Optional{
	eventlog.TriggerManual: "manual", eventlog.TriggerThreshold: "auto", eventlog.TriggerBudgetPressure: "auto",
}

func (s *sessionWriter) metadata(c *eventlog.Compaction, anchor string) jsontext.Value {
	var kept []string
	together := true
	for _, id := range c.KeptEventIDs {
		for _, uuid := range s.uuids[id] {
			if uuid == "" {
				continue
			}
			if n := len(kept); n > 0 && s.place[uuid] != s.place[kept[n-1]]+1 {
				together = false
			}
			kept = append(kept, uuid)
		}
	}
	meta := transcript.Object("trigger", triggerNames[c.Trigger], "preTokens", c.PreTokens, "postTokens", c.PostTokens)
	if len(kept) > 0 && together {
		meta = transcript.With(meta, "preservedSegment", transcript.Object(
			"headUuid", kept[0], "anchorUuid", anchor, "tailUuid", kept[len(kept)-1]))
	}
	if len(kept) > 0 {
		meta = transcript.With(meta, "preservedMessages", transcript.Object("anchorUuid", anchor, "uuids", kept, "allUuids", kept))
	}
	return meta
}
