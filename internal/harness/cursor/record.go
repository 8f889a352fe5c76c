package cursor

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// composer is a chat. Its messages are bubbles: it lists their ids in order or, in older versions, contains
// them.
type composer struct {
	ID           string           `json:"composerId"`
	Name         string           `json:"name"`
	Created      instant          `json:"createdAt"`
	Headers      []header         `json:"fullConversationHeadersOnly"`
	Conversation []jsontext.Value `json:"conversation"`
	Model        struct {
		Name string `json:"modelName"`
	} `json:"modelConfig"`
	Mode      string `json:"unifiedMode"`
	Workspace struct {
		URI struct {
			Path string `json:"fsPath"`
		} `json:"uri"`
	} `json:"workspaceIdentifier"`
	Subagent struct {
		Parent string `json:"parentComposerId"`
		CallID string `json:"toolCallId"`
	} `json:"subagentInfo"`
	Summary jsontext.Value `json:"latestConversationSummary"`
}

type header struct {
	ID string `json:"bubbleId"`
}

// The types of bubbles, and the capability that marks a compaction.
const (
	bubbleUser       = 1
	bubbleAssistant  = 2
	summarizedMarker = 22
)

type bubble struct {
	ID         string    `json:"bubbleId"`
	Type       int       `json:"type"`
	Created    instant   `json:"createdAt"`
	Text       string    `json:"text"`
	Capability int       `json:"capabilityType"`
	Thinking   thought   `json:"thinking"`
	Thoughts   []thought `json:"allThinkingBlocks"`
	Tool       *tool     `json:"toolFormerData"`
	Tokens     struct {
		Input  transcript.Count `json:"inputTokens"`
		Output transcript.Count `json:"outputTokens"`
	} `json:"tokenCount"`
	Model struct {
		Name string `json:"modelName"`
	} `json:"modelInfo"`
	Project    string   `json:"workspaceProjectDir"`
	Workspaces []string `json:"workspaceUris"`
}

type thought struct {
	Text      string `json:"text"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

// UnmarshalJSON never fails: a thought may be a string.
func (t *thought) UnmarshalJSON(raw []byte) error {
	type plain thought
	var p plain
	*t = thought{}
	if text, ok := transcript.Text(raw); ok {
		t.Text = text
	} else if transcript.Decode(raw, &p) == nil {
		*t = thought(p)
	}
	return nil
}

type tool struct {
	CallID      string         `json:"toolCallId"`
	ModelCallID string         `json:"modelCallId"`
	Name        string         `json:"name"`
	RawArgs     jsontext.Value `json:"rawArgs"`
	Params      jsontext.Value `json:"params"`
	Result      jsontext.Value `json:"result"`
	Error       jsontext.Value `json:"error"`
	Status      string         `json:"status"`
	Decision    string         `json:"userDecision"`
	Additional  struct {
		Status string `json:"status"`
	} `json:"additionalData"`
}

// instant is a time, as milliseconds of the epoch or as text.
type instant struct{ time.Time }

// UnmarshalJSON never fails.
func (i *instant) UnmarshalJSON(raw []byte) error {
	i.Time = time.Time{}
	if text, ok := transcript.Text(raw); ok {
		i.Time = transcript.ParseTime(text)
		return nil
	}
	var ms transcript.Count
	if err := ms.UnmarshalJSON(raw); err == nil && ms > 0 && ms < 1<<43 {
		i.Time = time.UnixMilli(int64(ms)).UTC()
	}
	return nil
}

// directory is where the chat ran; "" if the bubble does not say.
func (b *bubble) directory() string {
	if b.Project != "" {
		return b.Project
	}
	for _, uri := range b.Workspaces {
		if path, ok := strings.CutPrefix(uri, "file://"); ok {
			return path
		}
	}
	return ""
}

// text is the text of a JSON string, or any other JSON without whitespace; "" for null.
func text(raw jsontext.Value) string {
	if s, ok := transcript.Text(raw); ok {
		return s
	}
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	return transcript.Compact(raw)
}
