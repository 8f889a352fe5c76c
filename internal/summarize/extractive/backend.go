// Package extractive summarises a span without a model: it picks lines out of it, as
// they are there, each under the pointer of the block that it comes from. An agent
// that goes on with them has the exact names and the lines they were in.
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

// nothing is the summary of a span that holds no line worth its room.
const nothing = "(no lines to quote)"

// Summarize picks what the request's limit has room for.
func (Backend) Summarize(ctx context.Context, r summarize.Request) (summarize.Output, error) {
	if err := ctx.Err(); err != nil {
		return summarize.Output{}, err
	}
	s := gather(r.Older, r.Groups)
	text := s.pick(r.MaxOutputTokens, r.Count)
	if text == "" {
		text = nothing
	}
	return summarize.Output{Text: text}, nil
}
