package disklog

import (
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const turnField = 15

// appendEvent encodes all of an event but seq, which stands in the key, and
// turn, which is known only when the event has its place.
func appendEvent(b []byte, e eventlog.Event) ([]byte, error) {
	m := &storagev1.Event{
		EventId:     e.ID,
		TimeSeconds: e.Time.Unix(),
		TimeNanos:   int32(e.Time.Nanosecond()),
		Labels:      e.Labels,
	}
	if t := e.Tokens; t.Tokenizer != "" || len(t.Blocks) > 0 || t.Estimated {
		m.Tokens = &storagev1.TokenCounts{Tokenizer: t.Tokenizer, Blocks: t.Blocks, Estimated: t.Estimated}
	}
	switch body := e.Body.(type) {
	case *eventlog.Message:
		m.Kind = &storagev1.Event_Message{Message: &storagev1.Message{
			Role:    storagev1.Role(body.Role),
			Blocks:  encodeBlocks(body.Blocks),
			GroupId: body.GroupID,
			Model:   body.Model,
			Pinned:  body.Pinned,
		}}
	case *eventlog.Reminder:
		m.Kind = &storagev1.Event_Reminder{Reminder: &storagev1.Reminder{
			Body:              body.Body,
			TtlTurns:          body.TTLTurns,
			DedupeKey:         body.DedupeKey,
			PreserveOnCompact: body.PreserveOnCompact,
			RoleHint:          storagev1.Role(body.RoleHint),
			Tags:              body.Tags,
			Source:            body.Source,
		}}
	case *eventlog.Compaction:
		m.Kind = &storagev1.Event_Compaction{Compaction: &storagev1.Compaction{
			Trigger:      storagev1.CompactionTrigger(body.Trigger),
			Summary:      body.Summary,
			PreTokens:    body.PreTokens,
			PostTokens:   body.PostTokens,
			KeptEventIds: body.KeptEventIDs,
			Mode:         body.Mode,
			Strategy:     body.Strategy,
			NativeJson:   []byte(body.NativeJSON),
		}}
	case *eventlog.Custom:
		m.Kind = &storagev1.Event_Custom{Custom: &storagev1.Custom{Type: body.Type, Json: []byte(body.JSON)}}
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, m)
}

// turnSize is how many bytes appendTurn adds.
func turnSize(turn uint32) int {
	if turn == 0 {
		return 0
	}
	return protowire.SizeTag(turnField) + protowire.SizeVarint(uint64(turn))
}

func appendTurn(b []byte, turn uint32) []byte {
	if turn == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, turnField, protowire.VarintType), uint64(turn))
}

// decodeEvent reads the event that stands under an event key.
func decodeEvent(key, value []byte) (eventlog.Event, error) {
	var m storagev1.Event
	if err := decode(key, keyEvent, value, &m); err != nil {
		return eventlog.Event{}, err
	}
	e := eventlog.Event{
		Seq:    keySeq(key),
		Turn:   m.GetTurn(),
		ID:     m.GetEventId(),
		Time:   time.Unix(m.GetTimeSeconds(), int64(m.GetTimeNanos())).UTC(),
		Labels: m.GetLabels(),
		Tokens: eventlog.TokenCounts{
			Tokenizer: m.GetTokens().GetTokenizer(),
			Blocks:    m.GetTokens().GetBlocks(),
			Estimated: m.GetTokens().GetEstimated(),
		},
	}
	var ok bool
	if e.Body, ok = decodeBody(&m); !ok {
		return eventlog.Event{}, &eventlog.CorruptError{What: describeKey(key), Reason: "its content is of no known kind"}
	}
	return e, nil
}

func decodeBody(m *storagev1.Event) (eventlog.Body, bool) {
	switch kind := m.GetKind().(type) {
	case *storagev1.Event_Message:
		b := kind.Message
		blocks, ok := decodeBlocks(b.GetBlocks())
		return &eventlog.Message{
			Role:    eventlog.Role(b.GetRole()),
			Blocks:  blocks,
			GroupID: b.GetGroupId(),
			Model:   b.GetModel(),
			Pinned:  b.GetPinned(),
		}, ok && knownRole(b.GetRole())
	case *storagev1.Event_Reminder:
		b := kind.Reminder
		return &eventlog.Reminder{
			Body:              b.GetBody(),
			TTLTurns:          b.TtlTurns,
			DedupeKey:         b.GetDedupeKey(),
			PreserveOnCompact: b.GetPreserveOnCompact(),
			RoleHint:          eventlog.Role(b.GetRoleHint()),
			Tags:              b.GetTags(),
			Source:            b.GetSource(),
		}, knownRole(b.GetRoleHint())
	case *storagev1.Event_Compaction:
		b := kind.Compaction
		_, known := storagev1.CompactionTrigger_name[int32(b.GetTrigger())]
		return &eventlog.Compaction{
			Trigger:      eventlog.CompactionTrigger(b.GetTrigger()),
			Summary:      b.GetSummary(),
			PreTokens:    b.PreTokens,
			PostTokens:   b.PostTokens,
			KeptEventIDs: b.GetKeptEventIds(),
			Mode:         b.GetMode(),
			Strategy:     b.GetStrategy(),
			NativeJSON:   string(b.GetNativeJson()),
		}, known
	case *storagev1.Event_Custom:
		return &eventlog.Custom{Type: kind.Custom.GetType(), JSON: string(kind.Custom.GetJson())}, true
	default:
		return nil, false
	}
}

func knownRole(r storagev1.Role) bool {
	_, known := storagev1.Role_name[int32(r)]
	return known
}
