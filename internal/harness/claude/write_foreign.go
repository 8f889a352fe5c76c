package claude

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// acceptable matches the ids of calls that the API accepts.
var acceptable = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// foreign writes a message that was not read from a record of the harness. Each block of a reply is a record
// of its own, as in the harness's files.
func (s *sessionWriter) foreign(i int, e *eventlog.Event, m *eventlog.Message) {
	if m.Role == eventlog.RoleSystem {
		s.lost["system messages"]++
		return
	}
	blocks := s.speakable(m)
	if len(blocks) == 0 {
		return
	}
	parts := [][]eventlog.Block{blocks}
	if m.Role != eventlog.RoleUser {
		parts = parts[:0]
		for n := range blocks {
			parts = append(parts, blocks[n:n+1])
		}
	}
	event := *e
	event.Time = transcript.OrEpoch(s.at)
	message := *m
	if m.Role == eventlog.RoleAssistant {
		event.Labels = s.replyUsage(i)
		if message.GroupID == "" {
			message.GroupID = "msg_" + transcript.UUID(s.around.sessionID, e.ID, "message")
		}
	}
	for n, part := range parts {
		event.ID = s.uuid(e.ID, n)
		written, notes := s.accept(part)
		v := s.around.message(&event, &message, written, s.leaf())
		s.write(e.ID, s.linked(m, transcript.With(v, "contextd", notes)))
	}
}

// speakable returns the blocks that the harness can send to its model.
func (s *sessionWriter) speakable(m *eventlog.Message) []eventlog.Block {
	var blocks []eventlog.Block
	for _, b := range m.Blocks {
		switch c := b.(type) {
		case eventlog.Thinking:
			// The API refuses thinking without its own signature.
			if !strings.Contains(m.Model, "claude") || (c.Signature == "" && c.RedactedData == "") || provider.OfBlock(c, m.Model) == provider.Host {
				s.lost["thinking that Anthropic did not sign"]++
				continue
			}
		case eventlog.ProviderBlock:
			if c.Provider != content.Anthropic {
				s.lost["blocks of other providers"]++
				continue
			}
			if _, ok := provider.Members(c); ok { // the harness makes all calls itself
				s.lost["members of calls"]++
				continue
			}
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// accept changes calls and results so that the API accepts them. The notes hold the originals; nil if nothing
// was changed.
func (s *sessionWriter) accept(blocks []eventlog.Block) ([]eventlog.Block, jsontext.Value) {
	out := make([]eventlog.Block, len(blocks))
	n := notes{Calls: map[string]string{}, Spaced: map[string]string{}}
	for i, b := range blocks {
		switch c := b.(type) {
		case eventlog.ToolCall:
			id := s.callID(c.CallID)
			if id != c.CallID {
				n.Calls[id] = c.CallID
			}
			c.CallID = id
			if object := transcript.WrapArguments(c.Arguments); object != c.Arguments {
				c.Arguments = object
				n.Wrapped = append(n.Wrapped, id)
			} else if compact := transcript.Compact([]byte(c.Arguments)); compact != c.Arguments {
				n.Spaced[id] = c.Arguments
				c.Arguments = compact // a record is one line
			}
			b = c
		case eventlog.ToolResult:
			c.CallID = s.callID(c.CallID)
			c.Content = content.Readable(c.Content, content.Anthropic)
			b = c
		}
		out[i] = b
	}
	if len(n.Calls)+len(n.Wrapped)+len(n.Spaced) == 0 {
		return out, nil
	}
	return out, transcript.JSON(n)
}

func (s *sessionWriter) callID(id string) string {
	if acceptable.MatchString(id) {
		return id
	}
	return "toolu_" + transcript.UUID(s.around.sessionID, id, "call")
}

// uuid returns the id of an event's n-th record.
func (s *sessionWriter) uuid(event string, n int) string {
	switch {
	case n > 0:
		return transcript.UUID(s.around.sessionID, event, strconv.Itoa(n))
	case transcript.IsUUID(event):
		return event
	}
	return transcript.UUID(s.around.sessionID, event)
}

// replyUsage returns the usage of the reply that the event is a part of. The harness expects it in every
// record of a reply.
func (s *sessionWriter) replyUsage(i int) map[string]string {
	if s.usage == nil {
		s.usage = transcript.ReplyUsage(s.session.Events)
	}
	if labels := s.usage[i]; labels != nil {
		return labels
	}
	return map[string]string{transcript.LabelPromptTokens: "0"}
}

// importedBoundary writes a compaction that was read from records of the harness, and returns false for any
// other.
func (s *sessionWriter) importedBoundary(e *eventlog.Event, c *eventlog.Compaction) bool {
	var native record
	if c.NativeJSON == "" || transcript.Decode([]byte(c.NativeJSON), &native) != nil {
		return false
	}
	raw := transcript.Compacted([]byte(c.NativeJSON))
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
	summary := s.importedSummary(e, c, native.UUID)
	if meta, ok := transcript.MemberOf(raw, "compactMetadata"); ok && e.Labels[labelReplayed] != "" {
		// The messages that the harness wrote again are written once, so the list must say that they were
		// kept.
		kept, _ := s.kept(c)
		raw = transcript.Rewrite(raw, func(name string, value []byte) []byte {
			if name == "compactMetadata" {
				return preserving(meta, uuidOf(summary), kept)
			}
			return value
		})
	}
	s.write(e.ID, raw)
	s.flushBetween()
	if summary != nil {
		s.write(e.ID, summary)
	}
	return true
}

// importedSummary returns the record of a summary that was read, or nil if there was none.
func (s *sessionWriter) importedSummary(e *eventlog.Event, c *eventlog.Compaction, boundary string) []byte {
	d, ok := s.envelopes.Entries[e.ID]
	if ok {
		if summary, err := transcript.Amend(s.around.summary(e, c.Summary), []byte(d)); err == nil {
			return summary
		}
		s.lost["what records said besides their messages"]++
	} else if c.Summary == "" {
		return nil
	}
	event := *e
	event.ID, event.Time = boundary, transcript.OrEpoch(s.at)
	return s.around.summary(&event, c.Summary)
}

// boundary writes a compaction that the harness did not make: a marker and the record with the summary. If
// there is no summary, the marker is one that the harness does not know, so that it goes on with the whole
// session; after its own marker it would drop all of it.
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
	meta := transcript.Object("trigger", triggerNames[c.Trigger], "preTokens", c.PreTokens, "postTokens", c.PostTokens)
	kept, together := s.kept(c)
	if len(kept) > 0 && together {
		meta = transcript.With(meta, "preservedSegment", transcript.Object(
			"headUuid", kept[0], "anchorUuid", anchor, "tailUuid", kept[len(kept)-1]))
	}
	return preserving(meta, anchor, kept)
}

// kept returns the records of the messages that the compaction kept; together says that they are next to each
// other.
func (s *sessionWriter) kept(c *eventlog.Compaction) (uuids []string, together bool) {
	together = true
	for _, id := range c.KeptEventIDs {
		for _, uuid := range s.uuids[id] {
			if uuid == "" || !s.report.Again(2*len(uuid)) { // in two lists
				continue
			}
			if n := len(uuids); n > 0 && s.place[uuid] != s.place[uuids[n-1]]+1 {
				together = false
			}
			uuids = append(uuids, uuid)
		}
	}
	return uuids, together
}

// preserving adds the list of kept messages to a boundary's metadata.
func preserving(meta jsontext.Value, anchor string, kept []string) jsontext.Value {
	if len(kept) == 0 {
		return meta
	}
	return transcript.With(meta, "preservedMessages", transcript.Object("anchorUuid", anchor, "uuids", kept, "allUuids", kept))
}

// restorer restores the originals of what accept changed. It knows the original ids of calls by those that
// were written.
type restorer struct{ calls map[string]string }

// restore restores the ids and arguments of the calls and results among the blocks.
func (r *restorer) restore(n *notes, blocks []eventlog.Block) {
	if n != nil {
		for written, id := range n.Calls {
			if r.calls == nil {
				r.calls = map[string]string{}
			}
			if id != "" {
				r.calls[written] = id
			}
		}
	}
	// A record may have very many calls, also with the same id.
	var wrapped map[string]bool
	compact := map[string]string{}
	if n != nil {
		wrapped = transcript.Tags(n.Wrapped...)
	}
	for i, b := range blocks {
		switch b := b.(type) {
		case eventlog.ToolCall:
			same, known := compact[b.CallID]
			if n != nil && !known {
				same = transcript.Compact([]byte(n.Spaced[b.CallID]))
				compact[b.CallID] = same
			}
			if wrapped[b.CallID] {
				b.Arguments = transcript.UnwrapArguments(b.Arguments)
			} else if n != nil && same == b.Arguments {
				b.Arguments = n.Spaced[b.CallID]
			}
			b.CallID = r.own(b.CallID)
			blocks[i] = b
		case eventlog.ToolResult:
			b.CallID = r.own(b.CallID)
			blocks[i] = b
		}
	}
}

func (r *restorer) own(id string) string {
	if own := r.calls[id]; own != "" {
		return own
	}
	return id
}
