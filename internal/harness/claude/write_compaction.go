package claude

import (
	"strconv"

	"github.com/contextd/contextd/internal/harness/transcript"
	"github.com/contextd/contextd/internal/harness/transcript/jsonvalue"
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
		if summary, err := transcript.Amend(base.JSON(), []byte(d)); err == nil {
			s.write(e.ID, summary)
			return true
		}
		s.lost["what records said besides their messages"]++
		fallthrough
	case c.Summary != "":
		event := *e
		event.ID, event.Time = native.UUID, s.time()
		v := s.around.summary(&event, c.Summary)
		s.write(e.ID, v.JSON())
	}
	return true
}

// boundary writes a compaction of contextd's or of another harness: the marker, and
// the record that holds the summary. Behind a marker without a summary the harness would
// have nothing of the session left; it does not know the other, and goes on as before.
func (s *sessionWriter) boundary(e *eventlog.Event, c *eventlog.Compaction) {
	event := *e
	event.ID, event.Time = s.uuid(e.ID, 0), s.time()
	anchor := s.around.summary(&event, c.Summary)
	v := s.around.record("system")
	parent, subtype := "logicalParentUuid", boundarySubtype
	if c.Summary == "" {
		parent, subtype = "parentUuid", unreadSubtype
	}
	if leaf := s.leaf(); leaf != "" {
		v.Set(parent, jsonvalue.String(leaf))
	}
	v.Set("subtype", jsonvalue.String(subtype))
	v.Set("content", jsonvalue.String("Conversation compacted"))
	v.Set("isMeta", jsonvalue.Raw("false"))
	v.Set("level", jsonvalue.String("info"))
	v.Set("compactMetadata", s.metadata(c, uuidOf(anchor.JSON())))
	setIdentity(&v, event.ID, event.Time)
	s.write(e.ID, v.JSON())
	if c.Summary != "" {
		s.write(e.ID, anchor.JSON())
	}
}

func (s *sessionWriter) metadata(c *eventlog.Compaction, anchor string) jsonvalue.Value {
	meta := jsonvalue.Object()
	switch c.Trigger {
	case eventlog.TriggerManual:
		meta.Set("trigger", jsonvalue.String("manual"))
	case eventlog.TriggerThreshold, eventlog.TriggerBudgetPressure:
		meta.Set("trigger", jsonvalue.String("auto"))
	case eventlog.TriggerUnspecified:
	}
	if c.PreTokens != nil {
		meta.Set("preTokens", jsonvalue.Raw(strconv.FormatUint(*c.PreTokens, 10)))
	}
	if c.PostTokens != nil {
		meta.Set("postTokens", jsonvalue.Raw(strconv.FormatUint(*c.PostTokens, 10)))
	}
	kept := jsonvalue.List()
	var first, last string
	together := true
	for _, id := range c.KeptEventIDs {
		for _, uuid := range s.uuids[id] {
			if uuid == "" {
				continue
			}
			if first == "" {
				first = uuid
			} else if s.place[uuid] != s.place[last]+1 {
				together = false
			}
			last = uuid
			kept.Append(jsonvalue.String(uuid))
		}
	}
	if first != "" && together {
		meta.Set("preservedSegment", jsonvalue.Object(
			jsonvalue.Member{Name: "headUuid", Value: jsonvalue.String(first)},
			jsonvalue.Member{Name: "anchorUuid", Value: jsonvalue.String(anchor)},
			jsonvalue.Member{Name: "tailUuid", Value: jsonvalue.String(last)},
		))
	}
	if first != "" {
		meta.Set("preservedMessages", jsonvalue.Object(
			jsonvalue.Member{Name: "anchorUuid", Value: jsonvalue.String(anchor)},
			jsonvalue.Member{Name: "uuids", Value: kept},
			jsonvalue.Member{Name: "allUuids", Value: kept},
		))
	}
	return meta
}
