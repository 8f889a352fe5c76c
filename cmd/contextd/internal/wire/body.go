package wire

import (
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

var rolesToDomain = map[contextdv1.Role]eventlog.Role{
	contextdv1.Role_ROLE_UNSPECIFIED: eventlog.RoleUnspecified,
	contextdv1.Role_ROLE_SYSTEM:      eventlog.RoleSystem,
	contextdv1.Role_ROLE_USER:        eventlog.RoleUser,
	contextdv1.Role_ROLE_ASSISTANT:   eventlog.RoleAssistant,
	contextdv1.Role_ROLE_TOOL:        eventlog.RoleTool,
}

var rolesToProto = inverse(rolesToDomain)

var triggersToDomain = map[contextdv1.CompactionTrigger]eventlog.CompactionTrigger{
	contextdv1.CompactionTrigger_COMPACTION_TRIGGER_UNSPECIFIED:     eventlog.TriggerUnspecified,
	contextdv1.CompactionTrigger_COMPACTION_TRIGGER_MANUAL:          eventlog.TriggerManual,
	contextdv1.CompactionTrigger_COMPACTION_TRIGGER_THRESHOLD:       eventlog.TriggerThreshold,
	contextdv1.CompactionTrigger_COMPACTION_TRIGGER_BUDGET_PRESSURE: eventlog.TriggerBudgetPressure,
}

var triggersToProto = inverse(triggersToDomain)

func inverse[K, V comparable](m map[K]V) map[V]K {
	out := make(map[V]K, len(m))
	for k, v := range m {
		out[v] = k
	}
	return out
}

func messageToDomain(m *contextdv1.Message) (*eventlog.Message, error) {
	role, ok := rolesToDomain[m.GetRole()]
	if !ok {
		return nil, invalid("role", "must be system, user, assistant or tool")
	}
	if err := checkNames(named{"group_id", m.GetGroupId()}, named{"model", m.GetModel()}); err != nil {
		return nil, err
	}
	blocks, err := blocksToDomain("blocks", m.GetBlocks())
	if err != nil {
		return nil, err
	}
	return &eventlog.Message{
		Role:    role,
		Blocks:  blocks,
		GroupID: m.GetGroupId(),
		Model:   m.GetModel(),
		Pinned:  m.GetPinned(),
	}, nil
}

// MessageToDomain converts a message that belongs to no event.
func MessageToDomain(m *contextdv1.Message) (*eventlog.Message, error) { return messageToDomain(m) }

// messageToProto converts a message of the log.
func messageToProto(m *eventlog.Message) *contextdv1.Message {
	return &contextdv1.Message{
		Role:    rolesToProto[m.Role],
		Blocks:  blocksToProto(m.Blocks),
		GroupId: m.GroupID,
		Model:   m.Model,
		Pinned:  m.Pinned,
	}
}

func reminderToDomain(r *contextdv1.Reminder) (*eventlog.Reminder, error) {
	hint, ok := rolesToDomain[r.GetRoleHint()]
	if !ok {
		return nil, invalid("role_hint", "must be a role or unspecified")
	}
	if err := checkNames(named{"dedupe_key", r.GetDedupeKey()}, named{"source", r.GetSource()}); err != nil {
		return nil, err
	}
	if err := checkNameList("tags", r.GetTags()); err != nil {
		return nil, err
	}
	return &eventlog.Reminder{
		Body:              r.GetBody(),
		TTLTurns:          r.TtlTurns,
		DedupeKey:         r.GetDedupeKey(),
		PreserveOnCompact: r.GetPreserveOnCompact(),
		RoleHint:          hint,
		Tags:              r.GetTags(),
		Source:            r.GetSource(),
	}, nil
}

func reminderToProto(r *eventlog.Reminder) *contextdv1.Reminder {
	return &contextdv1.Reminder{
		Body:              r.Body,
		TtlTurns:          r.TTLTurns,
		DedupeKey:         r.DedupeKey,
		PreserveOnCompact: r.PreserveOnCompact,
		RoleHint:          rolesToProto[r.RoleHint],
		Tags:              r.Tags,
		Source:            r.Source,
	}
}

func compactionToDomain(c *contextdv1.Compaction) (*eventlog.Compaction, error) {
	trigger, ok := triggersToDomain[c.GetTrigger()]
	if !ok {
		return nil, invalid("trigger", "must be a known trigger or unspecified")
	}
	if err := checkNames(named{"mode", c.GetMode()}, named{"strategy", c.GetStrategy()}); err != nil {
		return nil, err
	}
	if err := checkNameList("kept_event_ids", c.GetKeptEventIds()); err != nil {
		return nil, err
	}
	if err := checkJSON("native_json", c.GetNativeJson()); err != nil {
		return nil, err
	}
	return &eventlog.Compaction{
		Trigger:      trigger,
		Summary:      c.GetSummary(),
		PreTokens:    c.PreTokens,
		PostTokens:   c.PostTokens,
		KeptEventIDs: c.GetKeptEventIds(),
		Mode:         c.GetMode(),
		Strategy:     c.GetStrategy(),
		NativeJSON:   string(c.GetNativeJson()),
		Decision:     decisionToDomain(c.GetDecision()),
	}, nil
}

func decisionToDomain(d *contextdv1.CompactionDecision) *eventlog.CompactionDecision {
	if d == nil {
		return nil
	}
	out := &eventlog.CompactionDecision{
		Through: eventlog.Seq(d.GetThroughSeq()), DigestTokens: d.GetDigestTokens(), Kept: seqsToDomain(d.GetKeptSeqs()),
		SummaryID: d.GetSummaryId(), SummaryThrough: eventlog.Seq(d.GetSummaryThroughSeq()), SummaryBy: d.GetSummaryBy(),
		Undoes: eventlog.Seq(d.GetUndoesSeq()), LateAfter: eventlog.Seq(d.GetLateAfterSeq()),
	}
	for _, at := range d.GetMasked() {
		out.Masked = append(out.Masked, eventlog.Place{Seq: eventlog.Seq(at.GetSeq()), Block: int(at.GetBlock())})
	}
	return out
}

func decisionToProto(d *eventlog.CompactionDecision) *contextdv1.CompactionDecision {
	if d == nil {
		return nil
	}
	out := &contextdv1.CompactionDecision{
		ThroughSeq: uint64(d.Through), DigestTokens: d.DigestTokens, KeptSeqs: SeqsToProto(d.Kept),
		SummaryId: d.SummaryID, SummaryThroughSeq: uint64(d.SummaryThrough), SummaryBy: d.SummaryBy, UndoesSeq: uint64(d.Undoes), LateAfterSeq: uint64(d.LateAfter),
	}
	for _, at := range d.Masked {
		out.Masked = append(out.Masked, &contextdv1.BlockPlace{Seq: uint64(at.Seq), Block: uint32(at.Block)})
	}
	return out
}

// SeqsToProto converts positions in the log.
func SeqsToProto(all []eventlog.Seq) []uint64 {
	var out []uint64
	for _, seq := range all {
		out = append(out, uint64(seq))
	}
	return out
}

func seqsToDomain(all []uint64) []eventlog.Seq {
	var out []eventlog.Seq
	for _, seq := range all {
		out = append(out, eventlog.Seq(seq))
	}
	return out
}

func compactionToProto(c *eventlog.Compaction) *contextdv1.Compaction {
	return &contextdv1.Compaction{
		Trigger:      triggersToProto[c.Trigger],
		Summary:      c.Summary,
		PreTokens:    c.PreTokens,
		PostTokens:   c.PostTokens,
		KeptEventIds: c.KeptEventIDs,
		Mode:         c.Mode,
		Strategy:     c.Strategy,
		NativeJson:   []byte(c.NativeJSON),
		Decision:     decisionToProto(c.Decision),
	}
}

func customToDomain(c *contextdv1.CustomEvent) (*eventlog.Custom, error) {
	if err := checkNames(named{"type", c.GetType()}); err != nil {
		return nil, err
	}
	if err := checkJSON("json", c.GetJson()); err != nil {
		return nil, err
	}
	return &eventlog.Custom{Type: c.GetType(), JSON: string(c.GetJson())}, nil
}

// TriggerToDomain converts a trigger that was validated.
func TriggerToDomain(t contextdv1.CompactionTrigger) eventlog.CompactionTrigger {
	return triggersToDomain[t]
}
