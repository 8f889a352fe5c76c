package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
)

type answer struct {
	Type       string `json:"type"`
	Model      string `json:"model"`
	StopReason string `json:"stop_reason"`
	Content    []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	Usage struct {
		Input       modelhttp.Tokens `json:"input_tokens"`
		CacheWrites modelhttp.Tokens `json:"cache_creation_input_tokens"`
		CacheReads  modelhttp.Tokens `json:"cache_read_input_tokens"`
		Output      modelhttp.Tokens `json:"output_tokens"`
	} `json:"usage"`
}

// parseAnswer reads the body of a success. Failures are *modelhttp.AnswerError. If the body is no answer of the API,
// it may be a proxy's: the failure is temporary. A decision of the model, such as a refusal, is permanent.
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
	if err := json.Unmarshal(body, &a); err != nil || a.Type != "message" {
		return passing("the answer is no message")
	}
	switch a.StopReason {
	case "max_tokens", "model_context_window_exceeded":
		return permanent("the model was cut off at its output limit")
	case "refusal":
		return permanent("the model refused")
	case "tool_use":
		return permanent("the model called a tool instead of writing")
	case "pause_turn":
		return passing("the model's server broke off")
	}
	var text strings.Builder
	for _, block := range a.Content {
		if block.Type == "text" {
			text.WriteString(block.Text)
		}
	}
	written := modelhttp.WithoutThinking(text.String())
	if written == "" {
		return permanent("the model wrote no text")
	}
	return summarize.Output{
		Text:         written,
		InputTokens:  uint64(a.Usage.Input) + uint64(a.Usage.CacheWrites) + uint64(a.Usage.CacheReads),
		OutputTokens: uint64(a.Usage.Output),
		Model:        a.Model,
	}, nil
}

// parseFailure reads the body of a failure. It uses the type as the code, because the API has no codes.
func parseFailure(body []byte) modelhttp.Failure {
	var f struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	// Members with unexpected types stay empty; the rest is used.
	_ = json.Unmarshal(body, &f)
	return modelhttp.Failure{
		Code:      f.Error.Type,
		Message:   f.Error.Message,
		Permanent: f.Error.Type == "request_too_large",
		Spent:     f.Error.Type == "billing_error",
	}
}
