package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// interrupted begins contextd's text for a result that is not in the log.
const interrupted = "[contextd: this call was interrupted"

// viewMessage is a message in contextd's own format: docs/format.md.
type viewMessage struct {
	Role   string      `json:"role"`
	Blocks []viewBlock `json:"blocks"`
}

type viewBlock struct {
	Text *struct {
		Text string `json:"text"`
	} `json:"text"`
	Thinking *struct {
		Text      string `json:"text"`
		Signature string `json:"signature"`
		Redacted  []byte `json:"redacted_data"`
		Encrypted string `json:"encrypted_content"`
	} `json:"thinking"`
	Call *struct {
		ID        string          `json:"call_id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments_json"`
		// Text is arguments that are not JSON.
		Text string `json:"arguments_text"`
	} `json:"tool_call"`
	Result *struct {
		ID      string      `json:"call_id"`
		Content []viewBlock `json:"content"`
		IsError bool        `json:"is_error"`
	} `json:"tool_result"`
	Media *struct {
		MIMEType string `json:"mime_type"`
		Data     string `json:"data"`
		URI      string `json:"uri"`
	} `json:"media"`
	Provider *struct {
		JSON json.RawMessage `json:"json"`
	} `json:"provider"`
}

// viewTurns parses the messages of a context, one per line.
func viewTurns(lines []byte) ([]Turn, error) {
	var turns []Turn
	for line := range bytes.Lines(lines) {
		var m viewMessage
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("the view: %w in %.200s", err, line)
		}
		for _, b := range m.Blocks {
			t, err := b.turn(m.Role)
			if err != nil {
				return nil, fmt.Errorf("the view: %w in %.200s", err, line)
			}
			turns = append(turns, t)
		}
	}
	return turns, nil
}

func (b viewBlock) turn(role string) (Turn, error) {
	switch {
	case b.Text != nil:
		return Turn{Role: role, Kind: Text, Body: b.Text.Text}, nil
	case b.Thinking != nil:
		return Turn{
			Role: role, Kind: Thinking, Body: b.Thinking.Text,
			Signature: b.Thinking.Signature, Secret: string(b.Thinking.Redacted) + b.Thinking.Encrypted,
		}, nil
	case b.Call != nil:
		return Turn{Role: role, Kind: Call, ID: b.Call.ID, Name: b.Call.Name, Body: cmp.Or(b.Call.Text, string(b.Call.Arguments))}, nil
	case b.Result != nil:
		t := Turn{Kind: Result, ID: b.Result.ID, Failed: b.Result.IsError}
		var said []string
		for _, c := range b.Result.Content {
			part, err := c.turn("")
			if err != nil {
				return t, err
			}
			if part.Kind == Other {
				part.Body = sameJSON(part.Body)
			}
			said = append(said, part.Body)
		}
		t.Body = strings.Join(said, "\n")
		t.Interrupted = t.Failed && strings.HasPrefix(t.Body, interrupted)
		return t, nil
	case b.Media != nil && b.Media.URI != "":
		return Turn{Role: role, Kind: Media, Body: b.Media.URI}, nil
	case b.Media != nil:
		return Turn{Role: role, Kind: Media, Body: "data:" + b.Media.MIMEType + ";base64," + b.Media.Data}, nil
	case b.Provider != nil:
		return Turn{Role: role, Kind: Other, Body: string(b.Provider.JSON)}, nil
	}
	return Turn{}, fmt.Errorf("a block of an unknown kind")
}

// markForeign sets Foreign in a view, which does not say itself which model spoke.
func markForeign(view []Turn, h Harness, s Session) error {
	read, err := harness.Read(bytes.NewReader(s.File), h.Name())
	if err != nil {
		return err
	}
	models, last := map[string]string{}, ""
	for _, e := range read.Sessions[0].Events {
		m, ok := e.Body.(*eventlog.Message)
		if !ok || m.Role != eventlog.RoleAssistant || e.Labels[transcript.LabelInjected] != "" {
			continue
		}
		last = m.Model
		for _, b := range m.Blocks {
			if t, ok := b.(eventlog.Thinking); ok {
				models[t.Signature+t.RedactedData+t.EncryptedContent] = m.Model
			}
		}
	}
	for i := range view {
		if t := &view[i]; t.Kind == Thinking && t.Signature+t.Secret != "" {
			t.Foreign = models[t.Signature+t.Secret] != last
		}
	}
	return nil
}
