package telemetry

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/contextd/contextd/internal/records"
)

// OpenTelemetry's conventions for generative AI are experimental. Their attributes are only set if the
// standard variable opts in to the latest version.
const (
	optIn      = "OTEL_SEMCONV_STABILITY_OPT_IN"
	optInGenAI = "gen_ai_latest_experimental"
)

func wantsGenAI(lookup func(string) (string, bool)) bool {
	if lookup == nil {
		return false
	}
	asked, _ := lookup(optIn)
	return slices.ContainsFunc(strings.Split(asked, ","), func(s string) bool { return strings.TrimSpace(s) == optInGenAI })
}

func genAIConversation(sessionID string) attribute.KeyValue {
	return attribute.String("gen_ai.conversation.id", sessionID)
}

// genAICall describes a reported model call. Values that were not reported are omitted.
func genAICall(c records.Call) []attribute.KeyValue {
	out := []attribute.KeyValue{genAIConversation(c.SessionID)}
	if c.Model != "" {
		out = append(out, attribute.String("gen_ai.request.model", c.Model))
	}
	if c.StopReason != "" {
		out = append(out, attribute.StringSlice("gen_ai.response.finish_reasons", []string{c.StopReason}))
	}
	for _, n := range []struct {
		key    string
		tokens uint64
	}{
		{"gen_ai.usage.input_tokens", c.InputTokens},
		{"gen_ai.usage.cache_read.input_tokens", c.CacheReadTokens},
		{"gen_ai.usage.cache_creation.input_tokens", c.CacheWriteTokens},
		{"gen_ai.usage.output_tokens", c.OutputTokens},
	} {
		if n.tokens > 0 {
			out = append(out, attribute.Int64(n.key, int64(n.tokens)))
		}
	}
	return out
}
