package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/decide"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

// Overlay is what somebody says of a policy. Each part that is there takes the whole place
// of the same part below it. The zero value says nothing.
type Overlay struct {
	// Name is that of the policy which takes the place of everything below; empty is none.
	Name        string
	ToolResults Part[reduce.ToolResults]
	Duplicates  *bool
	Clipping    *reduce.Clipping
	Thinking    *reduce.Thinking
	Window      *reduce.Window
	Collapse    Part[reduce.Collapse]
	Summaries   *decide.SummaryPolicy
	Cache       Part[reduce.Cache]
	Projection  *projection.Options
	// Recall is that of reduce.Policy.
	Recall *reduce.Recall
	// Reason is the caller's own, for the Projection.
	Reason string
}

// Part is what an overlay says of a part of a policy, given that part of the built-in policy
// at the bottom, which has what is left out. Nil says nothing.
type Part[T any] func(builtIn T) T

func (p Part[T]) lay(to *T, builtIn T) {
	if p != nil {
		*to = p(builtIn)
	}
}

// layers are a policy and the built-in one at its bottom.
type layers struct {
	assemble.Policy
	builtIn reduce.Policy
}

// lay lays an overlay over a policy. Errors name the field, which is under at.
func (s Set) lay(base layers, o Overlay, at string) (layers, error) {
	r := &base.Reduction
	o.ToolResults.lay(&r.ToolResults, base.builtIn.ToolResults)
	setIf(&r.Duplicates, o.Duplicates)
	setIf(&r.Clipping, o.Clipping)
	setIf(&r.Thinking, o.Thinking)
	setIf(&r.Window, o.Window)
	o.Collapse.lay(&r.Collapse, base.builtIn.Collapse)
	o.Cache.lay(&r.Cache, base.builtIn.Cache)
	setIf(&r.Recall, o.Recall)
	if o.Summaries != nil {
		base.Summaries = *o.Summaries
		if by := &base.Summaries.Summarizer; *by == "" {
			*by = s.summarizers.Default
		} else if !slices.Contains(s.summarizers.Names, *by) {
			return base, invalid(at+".summarization.summarizer", "%q is not a summarizer of the daemon's configuration; it knows %s", *by, strings.Join(s.summarizers.Names, ", "))
		}
	}
	if o.Projection == nil {
		return base, nil
	}
	var err error
	base.Projection, err = o.Projection.Compile()
	base.Reason = o.Reason
	if wrong, ok := errors.AsType[*projection.OptionsError](err); ok {
		return base, invalid(at+".projection."+wrong.Field, "%s", wrong.Reason)
	}
	return base, err
}

func setIf[T any](to, value *T) {
	if value != nil {
		*to = *value
	}
}

func invalid(field, format string, args ...any) error {
	return &eventlog.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
