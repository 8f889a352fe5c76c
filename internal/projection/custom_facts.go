package projection

import (
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/ledger"
	"github.com/contextd/contextd/internal/projection/expression"
	"github.com/contextd/contextd/internal/quote"
	"github.com/contextd/contextd/internal/reduce"
)

// customFacts caches facts about groups, and the texts that replace groups and results. No decision depends
// on what is cached.
type customFacts struct {
	mu sync.Mutex // held while the policy is applied
	reduce.Memo[customGroup]
}

// customGroup is what is cached of one group.
type customGroup struct {
	facts   *expression.Facts
	dropped *reduce.Dropped
	results map[*reduce.Call]*customTexts
	// succeeded are the tools of which a call was answered and did not fail; nil until needed.
	succeeded []string
}

// customTexts are the texts that may replace a result.
type customTexts struct {
	pointer, excerpt *reduce.Prepared
	// cut says that excerpt was computed, even if it is nil.
	cut bool
}

func (c *customFacts) of(g *reduce.Group) *expression.Facts {
	known := c.Of(g)
	if known.facts == nil {
		known.facts = expression.NewFacts(factsOf(g))
	}
	return known.facts
}

func factsOf(g *reduce.Group) expression.Fixed {
	f := expression.Fixed{TextChars: g.Chars, Labels: g.Labels}
	for m := range g.Messages {
		if role := g.Messages[m].Role.String(); !slices.Contains(f.Roles, role) {
			f.Roles = append(f.Roles, role)
		}
	}
	for k := range g.Calls {
		call := &g.Calls[k]
		f.Tools = append(f.Tools, call.Name)
		if call.Interrupted {
			continue
		}
		f.Results++
		f.ResultChars += g.Messages[call.Result].Chars
		if Failed(call) {
			f.Errors++
		}
	}
	return f
}

// succeededIn returns the tools of which a call of the group succeeded.
func (c *customFacts) succeededIn(g *reduce.Group) []string {
	known := c.Of(g)
	if known.succeeded == nil {
		known.succeeded = []string{}
		for k := range g.Calls {
			if call := &g.Calls[k]; !call.Interrupted && !Failed(call) && !slices.Contains(known.succeeded, call.Name) {
				known.succeeded = append(known.succeeded, call.Name)
			}
		}
	}
	return known.succeeded
}

// pointer replaces a stubbed result of group i. It is shorter than the stubs of reducers, so none of these
// replaces it later.
func (c *customFacts) pointer(v reduce.View, i int, call *reduce.Call) *reduce.Prepared {
	t := c.texts(v.Group(i), call)
	if t.pointer == nil {
		text := fmt.Sprintf("[contextd: %s result, %d chars; %s]",
			ledger.Cut(quote.Name(call.Name), 40), utf8.RuneCountInString(call.Body), v.Recall().Result(call))
		t.pointer = v.Prepare(i, call, reduce.Redacted, text, CustomExpression, stubReason)
	}
	return t.pointer
}

// excerpt returns head and tail of a result of group i; nil if the result is not longer than that.
func (c *customFacts) excerpt(v reduce.View, i int, call *reduce.Call) *reduce.Prepared {
	t := c.texts(v.Group(i), call)
	if !t.cut {
		t.cut = true
		if text, ok := v.Excerpt(i, call, customClipTokens); ok && text != "" {
			t.excerpt = v.Prepare(i, call, reduce.Clipped, text, CustomExpression, clipReason)
		}
	}
	return t.excerpt
}

// dropped returns what replaces group i.
func (c *customFacts) dropped(v reduce.View, i int) *reduce.Dropped {
	known := c.Of(v.Group(i))
	if known.dropped == nil {
		known.dropped = v.PrepareDrop(i, CustomExpression, dropReason, false)
	}
	return known.dropped
}

func (c *customFacts) texts(g *reduce.Group, call *reduce.Call) *customTexts {
	known := c.Of(g)
	t, ok := known.results[call]
	if !ok {
		if known.results == nil {
			known.results = map[*reduce.Call]*customTexts{}
		}
		t = &customTexts{}
		known.results[call] = t
	}
	return t
}
