package opencode

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// record is one message of a session with its parts.
type record struct {
	Info  info              `json:"info"`
	Parts []json.RawMessage `json:"parts"`
}

type info struct {
	ID      string          `json:"id"`
	Role    string          `json:"role"`
	ModelID string          `json:"modelID"`
	Summary json.RawMessage `json:"summary"` // true on a compaction's reply; an object on user messages
	Error   json.RawMessage `json:"error"`
	Time    struct {
		Created   int64 `json:"created"`
		Completed int64 `json:"completed"`
	} `json:"time"`
}

// failed is the error of a reply that the harness does not send: of any but an aborted one
// that had said something.
func (r *record) failed(parts []part) string {
	var e struct {
		Name string `json:"name"`
	}
	if len(r.Info.Error) == 0 || string(r.Info.Error) == "null" {
		return ""
	}
	if transcript.Decode(r.Info.Error, &e) != nil || e.Name == "" || len(e.Name) > transcript.MaxLabelValue {
		e.Name = "error"
	}
	if e.Name != "MessageAbortedError" {
		return e.Name
	}
	for i := range parts {
		if t := parts[i].Type; t != "step-start" && t != "reasoning" {
			return ""
		}
	}
	return e.Name
}

type part struct {
	Type      string                  `json:"type"`
	ID        string                  `json:"id"`
	Text      string                  `json:"text"`
	Synthetic bool                    `json:"synthetic"`
	Ignored   bool                    `json:"ignored"`
	CallID    string                  `json:"callID"`
	Tool      string                  `json:"tool"`
	State     *state                  `json:"state"`
	Metadata  map[string]partMetadata `json:"metadata"`
	Auto      *bool                   `json:"auto"` // of compaction
	TailStart string                  `json:"tail_start_id"`
	TailOld   string                  `json:"tailStartID"` // older versions write it so
	MIME      string                  `json:"mime"`        // of file
	URL       string                  `json:"url"`
	Tokens    *tokens                 `json:"tokens"` // of step-finish
	Files     fileNames               `json:"files"`  // of patch
}

// partMetadata is what a provider wants back with a part. Members of other kinds
// are next to the providers' and are read as nothing.
type partMetadata struct {
	Signature        string
	ItemID           string // of what OpenAI sealed
	EncryptedContent string
	RedactedData     string
	// Of contextd's own: the role of a message that it wrote as a part no model sees,
	// and what the harness does not say of a compaction.
	Role       string
	Compaction *compactionMetadata
}

type compactionMetadata struct {
	Trigger    string  `json:"trigger"`
	Mode       string  `json:"mode"`
	Strategy   string  `json:"strategy"`
	PreTokens  *uint64 `json:"preTokens"`
	PostTokens *uint64 `json:"postTokens"`
	// Kept names the messages that were kept where they are not a tail, and Again those
	// that say them again after the compaction.
	Kept  []string `json:"kept"`
	Again []string `json:"again"`
}

// UnmarshalJSON never fails: most metadata is not a provider's.
func (m *partMetadata) UnmarshalJSON(raw []byte) error {
	var provider struct {
		Signature                 string              `json:"signature"`
		ItemID                    string              `json:"itemId"`
		ReasoningEncryptedContent string              `json:"reasoningEncryptedContent"`
		RedactedData              string              `json:"redactedData"`
		Role                      string              `json:"role"`
		Compaction                *compactionMetadata `json:"compaction"`
	}
	if transcript.Decode(raw, &provider) == nil {
		*m = partMetadata{provider.Signature, provider.ItemID, provider.ReasoningEncryptedContent, provider.RedactedData, provider.Role, provider.Compaction}
	}
	return nil
}

type state struct {
	Status      string          `json:"status"`
	Input       json.RawMessage `json:"input"`
	Output      string          `json:"output"`
	Error       string          `json:"error"`
	Attachments []attachment    `json:"attachments"`
	Metadata    metadata        `json:"metadata"`
	Time        struct {
		Start     int64 `json:"start"`
		End       int64 `json:"end"`
		Compacted int64 `json:"compacted"`
	} `json:"time"`
}

type attachment struct {
	MIME string `json:"mime"`
	URL  string `json:"url"`
}

type tokens struct {
	Input  transcript.Count `json:"input"`
	Output transcript.Count `json:"output"`
	Cache  struct {
		Read  transcript.Count `json:"read"`
		Write transcript.Count `json:"write"`
	} `json:"cache"`
}

func (t *tokens) labels() map[string]string {
	if t == nil {
		return nil
	}
	return transcript.Usage{
		Prompt: t.Input + t.Cache.Read + t.Cache.Write, CacheRead: t.Cache.Read, CacheWrite: t.Cache.Write, Output: t.Output,
	}.Labels()
}

// answered reports whether the call has come to an end.
func (s *state) answered() bool { return s.Status == "completed" || s.Status == "error" }

// failed reports whether it ended badly: by its state, or by the exit code of a
// command.
func (s *state) failed() bool {
	_, interrupted := s.interrupted()
	return s.Status == "error" && !interrupted || s.exit() != ""
}

// interrupted returns what a tool had put out when it was interrupted; the model is given
// that and no error.
func (s *state) interrupted() (output string, ok bool) {
	return s.Metadata.Output, s.Status == "error" && s.Metadata.Interrupted
}

// exit is the exit code of a command that failed and that the harness takes for
// completed.
func (s *state) exit() string {
	if s.Status != "completed" || s.Metadata.Exit == 0 {
		return ""
	}
	return strconv.Itoa(s.Metadata.Exit)
}

// metadata is what a tool shows the user; most of it is not read.
type metadata struct {
	Exit      int
	SessionID string // where a subagent ran
	// Interrupted is set where Output is what there was until then.
	Interrupted bool
	Output      string
}

// UnmarshalJSON never fails.
func (m *metadata) UnmarshalJSON(raw []byte) error {
	*m = metadata{}
	var told struct {
		Exit      json.RawMessage `json:"exit"`
		SessionID json.RawMessage `json:"sessionId"`
		Stopped   json.RawMessage `json:"interrupted"`
		Output    json.RawMessage `json:"output"`
	}
	if transcript.Decode(raw, &told) != nil {
		told.Exit, told.SessionID, told.Stopped = nil, nil, nil
	}
	if n, err := strconv.Atoi(string(told.Exit)); err == nil {
		m.Exit = n
	}
	m.SessionID, _ = transcript.Text(told.SessionID)
	if string(told.Stopped) == "true" {
		m.Output, m.Interrupted = transcript.Text(told.Output)
	}
	return nil
}

func (p *part) thinking() eventlog.Thinking {
	t := eventlog.Thinking{Text: p.Text}
	for _, m := range p.Metadata {
		t.Signature = max(t.Signature, m.Signature)
		t.EncryptedContent = max(t.EncryptedContent, m.EncryptedContent)
		t.RedactedData = max(t.RedactedData, m.RedactedData)
		if m.EncryptedContent != "" && content.IsReasoningID(m.ItemID) && m.ItemID != content.MadeUpReasoningID(m.EncryptedContent) {
			t.Signature = m.ItemID
		}
	}
	return t
}

// at is a time of the file, in milliseconds of the epoch.
func at(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
