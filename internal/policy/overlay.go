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

// Overlay is what a configuration, a session or a request sets of a policy. Each part that is set replaces
// the same part of the layer below as a whole. The zero value sets nothing.
type Overlay struct {
	// Name is the policy that replaces all layers below; empty replaces nothing.
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
	// Recall is as in reduce.Policy.
	Recall *reduce.Recall
	// Reason is the caller's reason, for the projection's record.
	Reason string
}

// Part returns the part of a policy that an overlay sets. Fields that the overlay omits are taken from
// builtIn, the same part of the built-in policy at the bottom. A nil Part sets nothing.
type Part[T any] func(builtIn T) T

func (p Part[T]) lay(to *T, builtIn T) {
	if p != nil {
		*to = p(builtIn)
	}
}

// layers are a policy and the built-in policy at its bottom.
type layers struct {
	assemble.Policy
	builtIn reduce.Policy
}

// lay applies an overlay to a policy. Errors name the field, with at before it.
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
