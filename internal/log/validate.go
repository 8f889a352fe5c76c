package log

import (
	"fmt"
	"unicode/utf8"
)

// text is a field that must be UTF-8. Other text cannot be shown to a model or sent over the wire, so it must not get
// into the log, which never changes.
type text struct{ field, value string }

func validateTexts(texts ...text) *InvalidError {
	for _, t := range texts {
		if !utf8.ValidString(t.value) {
			return &InvalidError{t.field, "must be valid UTF-8"}
		}
	}
	return nil
}

func validateEnvelope(e Event) *InvalidError {
	if err := validateTexts(text{"event_id", e.ID}, text{"tokens.tokenizer", e.Tokens.Tokenizer}); err != nil {
		return err
	}
	return validateLabels(e.Labels)
}

func validateLabels(labels map[string]string) *InvalidError {
	for _, k := range sortedKeys(labels) {
		if err := validateTexts(text{fmt.Sprintf("labels[%q]", k), k}, text{fmt.Sprintf("labels[%q]", k), labels[k]}); err != nil {
			return err
		}
	}
	return nil
}

// validateEvent makes the checks that need no knowledge of the log.
func validateEvent(e Event) *InvalidError {
	if err := validateEnvelope(e); err != nil {
		return err
	}
	unset := &InvalidError{"kind", "must be set"}
	switch b := e.Body.(type) {
	case *Message:
		if b == nil {
			return unset
		}
		if err := validateMessage(b); err != nil {
			return err.in("message")
		}
		return nil
	case *Reminder:
		if b == nil {
			return unset
		}
		return validateReminder(b)
	case *Compaction:
		if b == nil {
			return unset
		}
		return validateCompaction(b)
	case *Custom:
		if b == nil {
			return unset
		}
		return validateTexts(text{"custom.type", b.Type})
	default:
		return unset
	}
}

func validateMessage(m *Message) *InvalidError {
	if m.Role == RoleUnspecified || m.Role > RoleTool {
		return &InvalidError{"role", "must be system, user, assistant or tool"}
	}
	if len(m.Blocks) == 0 {
		return &InvalidError{"blocks", "must not be empty"}
	}
	if err := validateTexts(text{"group_id", m.GroupID}, text{"model", m.Model}); err != nil {
		return err
	}
	calls := 0
	for i, b := range m.Blocks {
		if err := validateBlock(b); err != nil {
			return err.in("blocks[%d]", i)
		}
		if err := validateRole(m.Role, b); err != nil {
			return err.in("blocks[%d]", i)
		}
		if _, ok := b.(ToolCall); ok {
			calls++
		}
	}
	if calls > MaxOpenCalls {
		return &InvalidError{"blocks", fmt.Sprintf("must not hold more than %d tool calls", MaxOpenCalls)}
	}
	return nil
}

// validateRole checks that a block may be in a message of the role.
func validateRole(r Role, b Block) *InvalidError {
	switch b.(type) {
	case ToolCall:
		if r != RoleAssistant {
			return &InvalidError{"tool_call", "tool calls belong in assistant messages"}
		}
	case ToolResult:
		if r != RoleTool && r != RoleUser {
			return &InvalidError{"tool_result", "tool results belong in tool or user messages"}
		}
	default:
		if r == RoleTool {
			return &InvalidError{"tool_result", "a tool message holds tool results alone"}
		}
	}
	return nil
}

func validateReminder(r *Reminder) *InvalidError {
	if r.Body == "" {
		return &InvalidError{"reminder.body", "must not be empty"}
	}
	if r.RoleHint > RoleTool {
		return &InvalidError{"reminder.role_hint", "must be a role or unspecified"}
	}
	texts := []text{
		{"reminder.body", r.Body},
		{"reminder.dedupe_key", r.DedupeKey},
		{"reminder.source", r.Source},
	}
	for i, tag := range r.Tags {
		texts = append(texts, text{fmt.Sprintf("reminder.tags[%d]", i), tag})
	}
	return validateTexts(texts...)
}

func validateCompaction(c *Compaction) *InvalidError {
	if c.Trigger > TriggerBudgetPressure {
		return &InvalidError{"compaction.trigger", "must be a known trigger or unspecified"}
	}
	texts := []text{
		{"compaction.summary", c.Summary},
		{"compaction.mode", c.Mode},
		{"compaction.strategy", c.Strategy},
	}
	for i, id := range c.KeptEventIDs {
		texts = append(texts, text{fmt.Sprintf("compaction.kept_event_ids[%d]", i), id})
	}
	if err := validateTexts(texts...); err != nil {
		return err
	}
	if c.Decision == nil {
		return nil
	}
	if err := c.Decision.validate(c.Summary != ""); err != nil {
		return err.in("compaction.decision")
	}
	return nil
}

// validate refuses a decision with a field that would have no effect, so that every stored field has its meaning.
func (d *CompactionDecision) validate(summary bool) *InvalidError {
	switch {
	case d.Undoes != 0 && (d.Through != 0 || d.DigestTokens != 0 || len(d.Kept) > 0 || d.LateAfter != 0 || len(d.Masked) > 0 || d.SummaryID != "" || d.SummaryThrough != 0 || d.SummaryBy != ""):
		return &InvalidError{"undoes_seq", "must be the only field: reverting a compaction decides nothing else"}
	case d.Undoes == 0 && d.Through == 0 && len(d.Masked) == 0:
		return &InvalidError{"through_seq", "must be set where nothing is masked and nothing is reverted"}
	case (d.Through == 0) != (d.DigestTokens == 0):
		return &InvalidError{"digest_tokens", "must be set where through_seq is, and only there"}
	case d.Through == 0 && len(d.Kept) > 0:
		return &InvalidError{"kept_seqs", "must be empty where through_seq is 0"}
	case d.Through == 0 && d.LateAfter != 0:
		return &InvalidError{"late_after_seq", "must be 0 where through_seq is 0"}
	case (d.SummaryID == "") != (d.SummaryThrough == 0):
		return &InvalidError{"summary_through_seq", "must be set where there is a summary, and only there"}
	case d.SummaryID != "" && !summary:
		return &InvalidError{"summary_id", "names a summary, and the compaction has no text"}
	case d.SummaryThrough > d.Through:
		return &InvalidError{"summary_through_seq", fmt.Sprintf("is %d, after through_seq, which is %d", d.SummaryThrough, d.Through)}
	}
	return validateTexts(text{"summary_id", d.SummaryID}, text{"summary_by", d.SummaryBy})
}

// validateBlock makes the checks that need no knowledge of the log. JSON and binary data may have any bytes.
func validateBlock(b Block) *InvalidError {
	switch b := b.(type) {
	case Text:
		return validateTexts(text{"text.text", b.Text})
	case Thinking:
		return validateTexts(text{"thinking.text", b.Text}, text{"thinking.signature", b.Signature},
			text{"thinking.encrypted_content", b.EncryptedContent})
	case ToolCall:
		if b.CallID == "" {
			return &InvalidError{"tool_call.call_id", "must not be empty"}
		}
		if b.Name == "" {
			return &InvalidError{"tool_call.name", "must not be empty"}
		}
		return validateTexts(text{"tool_call.call_id", b.CallID}, text{"tool_call.name", b.Name})
	case ToolResult:
		if b.CallID == "" {
			return &InvalidError{"tool_result.call_id", "must not be empty"}
		}
		if err := validateTexts(text{"tool_result.call_id", b.CallID}, text{"tool_result.tool_name", b.ToolName}); err != nil {
			return err
		}
		for i, c := range b.Content {
			if err := validateResultContent(c); err != nil {
				return err.in("tool_result.content[%d]", i)
			}
		}
		return nil
	case Media:
		return validateTexts(text{"media.mime_type", b.MIMEType}, text{"media.uri", b.URI})
	case ProviderBlock:
		return validateTexts(text{"provider.provider", b.Provider})
	default:
		return &InvalidError{"kind", "must be set"}
	}
}

func validateResultContent(b Block) *InvalidError {
	switch b.(type) {
	case Text, Media, ProviderBlock:
		return validateBlock(b)
	default:
		return &InvalidError{"kind", "a tool result holds text, media and provider blocks only"}
	}
}
