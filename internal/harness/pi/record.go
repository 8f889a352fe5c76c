package pi

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// record is one line of a session file.
type record struct {
	Type      string         `json:"type"`
	ID        string         `json:"id"`
	Version   int            `json:"version"`
	ParentID  jsontext.Value `json:"parentId"`
	Timestamp string         `json:"timestamp"`
	Message   *message       `json:"message"`
	Content   jsontext.Value `json:"content"` // of custom_message

	CWD           string `json:"cwd"`
	ParentSession string `json:"parentSession"`

	CustomType string `json:"customType"`
	Data       data   `json:"data"`

	Summary      string                    `json:"summary"`
	TokensBefore transcript.Count          `json:"tokensBefore"`
	Details      transcript.Maybe[details] `json:"details"`
	// FirstKeptIndex is the index of a record, from 0; version 1 has it.
	FirstKeptIndex *int   `json:"firstKeptEntryIndex"`
	FirstKeptID    string `json:"firstKeptEntryId"`
	// RetainedTail are copies of the kept messages; newer versions write it in place of FirstKeptID.
	RetainedTail []jsontext.Value `json:"retainedTail"`
	// KeptOf is contextd's own: the entry that this one repeats after a compaction.
	KeptOf string `json:"contextdKeptOf"`
}

type message struct {
	Role       string         `json:"role"`
	Content    jsontext.Value `json:"content"`
	Model      string         `json:"model"`
	StopReason string         `json:"stopReason"`
	Usage      usage          `json:"usage"`

	ToolCallID string         `json:"toolCallId"`
	ToolName   string         `json:"toolName"`
	IsError    bool           `json:"isError"`
	Details    jsontext.Value `json:"details"`

	// Of bashExecution, a command that the user ran.
	Command   string `json:"command"`
	Output    string `json:"output"`
	ExitCode  *int   `json:"exitCode"`
	Cancelled bool   `json:"cancelled"`
	Excluded  bool   `json:"excludeFromContext"`
	Truncated bool   `json:"truncated"`
	Whole     string `json:"fullOutputPath"` // set if the output was truncated
}

type usage struct {
	Input      transcript.Count `json:"input"`
	Output     transcript.Count `json:"output"`
	CacheRead  transcript.Count `json:"cacheRead"`
	CacheWrite transcript.Count `json:"cacheWrite"`
}

func (u usage) labels() map[string]string {
	return transcript.Usage{
		Prompt: u.Input + u.CacheRead + u.CacheWrite, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output,
	}.Labels()
}

type block struct {
	Type              string         `json:"type"`
	Text              string         `json:"text"`
	TextSignature     string         `json:"textSignature"`
	Thinking          string         `json:"thinking"`
	ThinkingSignature string         `json:"thinkingSignature"`
	Redacted          bool           `json:"redacted"`
	ID                string         `json:"id"`
	Name              string         `json:"name"`
	Arguments         jsontext.Value `json:"arguments"`
	ThoughtSignature  string         `json:"thoughtSignature"`
	Data              string         `json:"data"`
	MIMEType          string         `json:"mimeType"`
}

// thinking keeps a signature unchanged. With OpenAI's models the signature is the whole reasoning item; of
// that it keeps the encrypted content and the id, which the provider needs again.
func (b *block) thinking() eventlog.Thinking {
	var item struct {
		ID               string `json:"id"`
		EncryptedContent string `json:"encrypted_content"`
	}
	switch {
	case b.Redacted:
		return eventlog.Thinking{RedactedData: b.ThinkingSignature}
	case strings.HasPrefix(b.ThinkingSignature, "{") &&
		transcript.Decode([]byte(b.ThinkingSignature), &item) == nil && item.EncryptedContent != "":
		t := eventlog.Thinking{Text: b.Thinking, EncryptedContent: item.EncryptedContent}
		if content.IsReasoningID(item.ID) && item.ID != content.MadeUpReasoningID(item.EncryptedContent) {
			t.Signature = item.ID
		}
		return t
	case slices.Contains(reasoningMembers, b.ThinkingSignature):
		return eventlog.Thinking{Text: b.Thinking}
	}
	return eventlog.Thinking{Text: b.Thinking, Signature: b.ThinkingSignature}
}

// data is the data of an extension's entry; only texts and contextd's own compactions are read.
type data struct {
	texts []string
	// compaction and tokensBefore are of a compaction that contextd wrote as a custom entry.
	compaction   details
	tokensBefore transcript.Count
}

// UnmarshalJSON never fails.
func (d *data) UnmarshalJSON(raw []byte) error {
	*d = data{}
	if text, ok := transcript.Text(raw); ok {
		d.texts = []string{text}
	} else if transcript.Decode(raw, &d.texts) != nil {
		d.texts = nil
		var compaction struct {
			details
			TokensBefore transcript.Count `json:"tokensBefore"`
		}
		if bytes.Contains(raw, []byte(`"contextd"`)) && transcript.Decode(raw, &compaction) == nil {
			d.compaction, d.tokensBefore = compaction.details, compaction.TokensBefore
		}
	}
	return nil
}
