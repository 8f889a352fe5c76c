// Package extractive summarises a span without a model: it picks out of it what the assistant
// said, as it is there, each part under the pointer of the block that it comes from. Calls,
// names and the lines of files are in the record around a summary.
package extractive

import (
	"context"

	"github.com/contextd/contextd/internal/summarize"
)

// Backend is a summarize.Rules. The zero value is ready, and the same request always
// leads to the same text.
type Backend struct{}

var _ summarize.Rules = Backend{}

// Rules implements summarize.Rules.
func (Backend) Rules() {}

// nothing is the summary of a span without a line worth quoting.
const nothing = "(no lines to quote)"

// limitPart is the part of the request's limit that is used, one over this: a model also says what was done and
// why, but quotations of the log need not repeat that.
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
