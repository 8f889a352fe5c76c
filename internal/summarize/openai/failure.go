package openai

import (
	"encoding/json"
	"strconv"

	"github.com/contextd/contextd/internal/summarize/modelhttp"
)

// The codes and types of failures that the status does not show.
var (
	tooLong = map[string]bool{
		"context_length_exceeded":   true, // OpenAI, vLLM, LiteLLM, llama-cpp-python
		"exceed_context_size_error": true, // llama.cpp
	}
	spent = map[string]bool{"insufficient_quota": true, "billing_hard_limit_reached": true}
)

// parseFailure reads the forms in which servers report errors: the object that
// OpenAI defined, its members at the top level, or a single string.
func parseFailure(body []byte) modelhttp.Failure {
	type object struct {
		Message, Detail word
		Type, Code      word
	}
	var outer struct {
		Error json.RawMessage
		object
	}
	// Members with unexpected types stay empty; the rest is used.
	_ = json.Unmarshal(body, &outer)
	inner := outer.object
	if len(outer.Error) > 0 {
		inner = object{}
		if json.Unmarshal(outer.Error, &inner) != nil {
			_ = json.Unmarshal(outer.Error, &inner.Message)
		}
	}
	f := modelhttp.Failure{Message: string(inner.Message), Code: string(inner.Code)}
	if f.Message == "" {
		f.Message = string(inner.Detail)
	}
	// Some servers repeat the status as the code; the type says more.
	if _, err := strconv.Atoi(f.Code); err == nil || f.Code == "" {
		f.Code = string(inner.Type)
	}
	for _, code := range []string{string(inner.Code), string(inner.Type)} {
		f.Permanent = f.Permanent || tooLong[code]
		f.Spent = f.Spent || spent[code]
	}
	return f
}

// word is a string, or a number unchanged; everything else is empty.
type word string

func (w *word) UnmarshalJSON(b []byte) error {
	*w = ""
	var s string
	if json.Unmarshal(b, &s) == nil {
		*w = word(s)
	} else if n := json.Number(""); json.Unmarshal(b, &n) == nil {
		*w = word(n)
	}
	return nil
}
