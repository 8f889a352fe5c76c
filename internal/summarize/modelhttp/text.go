package modelhttp

import (
	"strings"

	"github.com/contextd/contextd/internal/summarize"
)

// thinking are the marks of models around reasoning, which some servers leave in the text.
var thinking = []struct{ begin, end string }{
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"[THINK]", "[/THINK]"},
}

// WithoutThinking returns text without the reasoning at its beginning, and without space around it. Later marks stay,
// because a summary may be about them.
func WithoutThinking(text string) string {
	text = strings.TrimSpace(text)
	for _, mark := range thinking {
		if rest, ok := strings.CutPrefix(text, mark.begin); ok {
			_, answer, _ := strings.Cut(rest, mark.end)
			return strings.TrimSpace(answer)
		}
		// Some prompt templates contain the first mark, so that the model writes only the second, on a line of its
		// own.
		before, after, ok := strings.Cut("\n"+text+"\n", "\n"+mark.end+"\n")
		if ok && !strings.Contains(before, mark.begin) {
			return strings.TrimSpace(after)
		}
	}
	return text
}

// OutputLimit returns the limit on tokens to send with the request, 0 for none: the request's own, some room because
// the model's tokenizer differs, and the reasoning before the text.
func (o Options) OutputLimit(r summarize.Request) uint64 {
	if r.MaxOutputTokens == 0 {
		return 0
	}
	const most = 1 << 31
	limit := min(r.MaxOutputTokens, most)
	return limit + limit/4 + 16 + o.ReasoningTokens
}
