package read

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Usage is what a provider counted, by the body of its response, for Client.Record: all tokens
// of the prompt, cached ones included. What the provider does not report is 0.
func Usage(body []byte) (*contextdv1.RecordModelCallRequest, error) {
	v := value(bytes.TrimPrefix(body, byteOrderMark))
	used, outer := v.get("usage"), v.members()
	switch {
	case outer == nil:
		return nil, errors.New("the response is no JSON object")
	case outer["candidates"] != nil, outer["usageMetadata"] != nil, outer["promptFeedback"] != nil:
		used = v.get("usageMetadata")
		return &contextdv1.RecordModelCallRequest{
			InputTokens: count(used, "promptTokenCount"), CacheReadTokens: count(used, "cachedContentTokenCount"),
			OutputTokens: count(used, "candidatesTokenCount") + count(used, "thoughtsTokenCount"),
			StopReason:   first(v.get("candidates")).get("finishReason").text(), Model: v.get("modelVersion").text(),
		}, nil
	case outer["choices"] != nil:
		details := used.get("prompt_tokens_details")
		return &contextdv1.RecordModelCallRequest{
			InputTokens: count(used, "prompt_tokens"), CacheReadTokens: count(details, "cached_tokens"),
			CacheWriteTokens: count(details, "cache_write_tokens"), OutputTokens: count(used, "completion_tokens"),
			StopReason: first(v.get("choices")).get("finish_reason").text(), Model: v.get("model").text(),
		}, nil
	case outer["output"] != nil:
		details := used.get("input_tokens_details")
		return &contextdv1.RecordModelCallRequest{
			InputTokens: count(used, "input_tokens"), CacheReadTokens: count(details, "cached_tokens"),
			CacheWriteTokens: count(details, "cache_write_tokens"), OutputTokens: count(used, "output_tokens"),
			StopReason: cmp.Or(v.get("incomplete_details").get("reason").text(), v.get("status").text()), Model: v.get("model").text(),
		}, nil
	}
	// Anthropic counts what was read from and written to the cache separately. Where its servers ran tools, it adds up the
	// prompts of the model's calls, of which the first was sent.
	prompt := used
	for _, call := range used.get("iterations").elements() {
		if call.get("type").text() == "message" {
			prompt = call
			break
		}
	}
	read, written := count(prompt, "cache_read_input_tokens"), count(prompt, "cache_creation_input_tokens")
	return &contextdv1.RecordModelCallRequest{
		InputTokens: count(prompt, "input_tokens") + read + written, CacheReadTokens: read, CacheWriteTokens: written,
		OutputTokens: count(used, "output_tokens"), StopReason: v.get("stop_reason").text(), Model: v.get("model").text(),
	}, nil
}

// count is a member that is a whole number, as 1.0 is one, and not too large for a double; else 0.
func count(v value, name string) uint64 {
	var n float64
	if json.Unmarshal(v.get(name), &n) != nil || n < 0 || n >= 1<<53 || n != math.Trunc(n) {
		return 0
	}
	return uint64(n)
}

func first(v value) value {
	if all := v.elements(); len(all) > 0 {
		return all[0]
	}
	return nil
}
