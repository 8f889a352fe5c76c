// Package extractive summarises a span without a model: it quotes what the assistant said, each part under the
// pointer of its block. It does not quote calls, names and lines of files, because the record around a summary has
// these.
package extractive

import (
	"context"

	"github.com/contextd/contextd/internal/summarize"
)

// Backend is a summarize.Rules. The zero value is ready. The same request always gives the same text.
type Backend struct{}

var _ summarize.Rules = Backend{}

// Rules implements summarize.Rules.
func (Backend) Rules() {}

// nothing is the summary, which a model reads, of a span without a line worth quoting.
const nothing = "Nothing that the assistant said is quoted here."

// limitPart says that a third of the request's limit is used. A model also says what was done and why; quotations
// need not repeat that.
const limitPart = 3

// Summarize quotes as much as a part of the request's limit has room for.
func (Backend) Summarize(ctx context.Context, r summarize.Request) (summarize.Output, error) {
	if err := ctx.Err(); err != nil {
		return summarize.Output{}, err
	}
	s := gather(r.Older, r.Groups)
	text := s.pick(r.MaxOutputTokens/limitPart, r.Count)
	if text == "" {
		text = nothing
	}
	return summarize.Output{Text: text}, nil
}
