package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
)

type answer struct {
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   struct {
		PromptTokens     modelhttp.Tokens `json:"prompt_tokens"`
		CompletionTokens modelhttp.Tokens `json:"completion_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type choice struct {
	FinishReason string `json:"finish_reason"`
	Message      *struct {
		Content content `json:"content"`
		Refusal string  `json:"refusal"`
	} `json:"message"`
}

// content is the text of a message: a string, or the parts with type text.
type content string

func (c *content) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '[' {
		return json.Unmarshal(b, (*string)(c))
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	var text strings.Builder
	for _, p := range parts {
		if p.Type == "text" {
			text.WriteString(p.Text)
		}
	}
	*c = content(text.String())
	return nil
}

// parseAnswer reads the body of a success. Failures are *modelhttp.AnswerError. If the body is no answer of the API,
// it may be a proxy's or a starting server's: the failure is temporary. A decision of the model, such as a refusal,
// is permanent.
func parseAnswer(body []byte) (summarize.Output, error) {
	passing := func(reason string) (summarize.Output, error) {
		return summarize.Output{}, &modelhttp.AnswerError{Reason: reason}
	}
	permanent := func(reason string) (summarize.Output, error) {
		return summarize.Output{}, &modelhttp.AnswerError{Reason: reason, Permanent: true}
	}
	if !json.Valid(body) {
		return passing("the answer is not JSON")
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return passing("the answer is no chat completion")
	}
	// Some gateways answer 200 before they know of the error.
	if len(a.Error) > 0 && !bytes.Equal(a.Error, []byte("null")) {
		f := parseFailure(body)
		return summarize.Output{}, &modelhttp.AnswerError{Reason: "a success that holds an error", Permanent: f.Permanent}
	}
	if len(a.Choices) == 0 || a.Choices[0].Message == nil {
		return passing("the answer holds no message")
	}
	first := a.Choices[0]
	switch first.FinishReason {
	case "length", "max_tokens":
		return permanent("the model was cut off at its output limit")
	case "content_filter":
		return permanent("a content filter cut the model off")
	case "tool_calls", "function_call":
		return permanent("the model called a tool instead of writing")
	case "error", "abort":
		return passing("the model's server broke off")
	}
	if first.Message.Refusal != "" {
		return permanent("the model refused")
	}
	text := modelhttp.WithoutThinking(string(first.Message.Content))
	if text == "" {
		return permanent("the model wrote no text")
	}
	return summarize.Output{
		Text:         text,
		InputTokens:  uint64(a.Usage.PromptTokens),
		OutputTokens: uint64(a.Usage.CompletionTokens),
		Model:        a.Model,
	}, nil
}
