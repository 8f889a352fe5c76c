package projection

import (
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/ledger"
	"github.com/contextd/contextd/internal/projection/expression"
	"github.com/contextd/contextd/internal/reduce"
)

// customFacts keeps what is known of groups and the texts that stand for their results,
// so that only what is new costs time. Groups are immutable, so nothing that is decided
// depends on what is kept.
type customFacts struct {
	mu     sync.Mutex
	groups map[*reduce.Group]*expression.Facts
	texts  map[*reduce.Call]*customTexts
	left   map[*reduce.Group]*reduce.Dropped
}

// customTexts are the texts in a result's place.
type customTexts struct {
	pointer, excerpt *reduce.Prepared
	// cut is set where it is known whether there is an excerpt.
	cut bool
}

func newCustomFacts() *customFacts {
	return &customFacts{groups: map[*reduce.Group]*expression.Facts{}, texts: map[*reduce.Call]*customTexts{}, left: map[*reduce.Group]*reduce.Dropped{}}
}

func (c *customFacts) of(g *reduce.Group) *expression.Facts {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.groups[g]
	if !ok {
		f = expression.NewFacts(factsOf(g))
		c.groups[g] = f
	}
	return f
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

// pointer is what a stubbed result of group i leaves: shorter than those of reducers, so
// that none takes its place later.
func (c *customFacts) pointer(v reduce.View, i int, call *reduce.Call) *reduce.Prepared {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.textsOf(call)
	if t.pointer == nil {
		text := fmt.Sprintf("[contextd: %s result, %d chars; ResolvePointer %s]",
			ledger.Cut(call.Name, 40), utf8.RuneCountInString(call.Body), reduce.Pointer(call.Seq, call.Block))
		t.pointer = v.Prepare(i, call, reduce.Redacted, text, CustomExpression, stubReason)
	}
	return t.pointer
}

// excerpt is head and tail of a result of group i; nil if it is no larger.
func (c *customFacts) excerpt(v reduce.View, i int, call *reduce.Call) *reduce.Prepared {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.textsOf(call)
	if !t.cut {
		t.cut = true
		if text, ok := v.Excerpt(i, call, customClipTokens); ok && text != "" {
			t.excerpt = v.Prepare(i, call, reduce.Clipped, text, CustomExpression, clipReason)
		}
	}
	return t.excerpt
}

// leaving is what stands in the place of group i.
func (c *customFacts) leaving(v reduce.View, i int) *reduce.Dropped {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := v.Group(i)
	d, ok := c.left[g]
	if !ok {
		d = v.PrepareDrop(i, CustomExpression, dropReason, false)
		c.left[g] = d
	}
	return d
}

func (c *customFacts) textsOf(call *reduce.Call) *customTexts {
	t, ok := c.texts[call]
	if !ok {
		t = &customTexts{}
		c.texts[call] = t
	}
	return t
}

// prune forgets what is in the view no more, once that is half of what is kept.
func (c *customFacts) prune(v reduce.View) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if max(len(c.groups), len(c.left)) <= 2*v.Len()+64 {
		return
	}
	groups, texts := make(map[*reduce.Group]*expression.Facts, v.Len()), map[*reduce.Call]*customTexts{}
	left := map[*reduce.Group]*reduce.Dropped{}
	for i := range v.Len() {
		g := v.Group(i)
		if f, ok := c.groups[g]; ok {
			groups[g] = f
		}
		if d, ok := c.left[g]; ok {
			left[g] = d
		}
		for k := range g.Calls {
			if t, ok := c.texts[&g.Calls[k]]; ok {
				texts[&g.Calls[k]] = t
			}
		}
	}
	c.groups, c.texts, c.left = groups, texts, left
}
