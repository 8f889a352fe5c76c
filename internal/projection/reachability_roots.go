package projection

import (
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection/reference"
	"github.com/contextd/contextd/internal/reduce"
)

// consult marks the results that roots name:
//   - A name in the options marks all results that have it.
//   - A name in the conversation marks only the newest of these: of a file that was read ten times the last read
//     counts, and a directory that all paths share keeps just one result.
//   - A quoted line marks all results that have it.
//
// Only roots in the options and in what was said, not those in results, show a redacted result again. What was said
// does so only if no other result in the view has the name.
func (c *collection) consult() {
	r := &c.reach
	ended := func() bool { return c.view.Ended() != nil }
	r.given(c.options, ended)
	window := max(0, c.view.Len()-c.window)
	for i := range c.view.Len() {
		if ended() {
			return
		}
		if g := c.view.Group(i); (i >= window || c.view.Spared(i)) && c.view.Dropped(i) == nil {
			for _, name := range c.held[i].names(g) {
				r.say(name)
			}
		}
	}
	for i := window; i < c.view.Len() && !ended(); i++ {
		for _, at := range c.held[i].results {
			if at < 0 {
				continue
			}
			for _, id := range c.index.results[at].names {
				if !r.tools[r.names[id]] {
					r.newest(id, false)
				}
			}
		}
	}
}

// Named implements Rooted: the results in a view that the roots of the options name.
func (p *reachability) Named(v reduce.View) map[eventlog.Place]bool {
	if !slices.ContainsFunc(p.options.rootTexts(), func(text string) bool { return text != "" }) {
		return nil
	}
	p.index.mu.Lock()
	defer p.index.mu.Unlock()
	r := reach{nameIndex: p.index, tools: map[string]bool{}}
	for i, held := range p.index.follow(v) {
		for n, at := range held.results {
			r.tools[v.Group(i).Calls[n].Name] = true
			if at >= 0 {
				r.results[at].pass = r.pass
			}
		}
	}
	r.given(p.options, func() bool { return v.Ended() != nil })
	named := map[eventlog.Place]bool{}
	for i := range r.results {
		if h := &r.results[i]; h.pass == r.pass && h.reached == r.pass {
			named[h.call.Place()] = true
		}
	}
	return named
}

// rootTexts returns the texts in the options whose names are roots.
func (o Options) rootTexts() []string {
	return slices.Concat(o.Roots, []string{o.ActivePlan, o.Scratchpad}, o.PendingToolArgs, o.UnresolvedFindings)
}

// given marks the results that the roots of the options name.
func (r *reach) given(o Options, ended func() bool) {
	for _, text := range o.rootTexts() {
		if ended() {
			return
		}
		reference.EachReference(text, r.every)
		if strings.IndexByte(text, '\\') >= 0 {
			reference.EachReference(reference.Unescaped(text), r.every)
		}
	}
	for _, root := range o.Roots {
		r.phrase(strings.TrimSpace(root), ended)
	}
}

// reach marks results that roots name, in one pass.
type reach struct {
	*nameIndex
	tools map[string]bool // names of tools, which are ignored as roots
}

// every marks all results that have a name.
func (r *reach) every(name string) {
	if id, ok := r.ids[name]; ok && !r.tools[name] {
		for _, at := range r.holders[id] {
			r.mark(at, id, true)
		}
	}
}

// say marks results by a name or a line that was said.
func (r *reach) say(name string) {
	if strings.ContainsAny(name, " \t") { // a line
		r.every(name)
	} else if id, ok := r.ids[name]; ok && !r.tools[name] {
		r.newest(id, r.alone(id))
	}
}

// alone reports whether at most one result in the view has a name.
func (r *reach) alone(id int32) bool {
	n := 0
	for _, at := range r.holders[id] {
		if r.results[at].seen == r.pass {
			if n++; n > 1 {
				return false
			}
		}
	}
	return true
}

// newest marks the newest result that has a name.
func (r *reach) newest(id int32, back bool) {
	newest := int32(-1)
	for _, at := range r.holders[id] {
		if h := &r.results[at]; h.pass == r.pass && (newest < 0 || older(r.results[newest].call, h.call)) {
			newest = at
		}
	}
	if newest >= 0 {
		r.mark(newest, id, back)
	}
}

// mark records that a root names a result. The first root is kept, unless only a later one shows the result again
// (back).
func (r *reach) mark(at, id int32, back bool) {
	h := &r.results[at]
	if h.pass != r.pass || h.reached == r.pass && (h.back || !back) {
		return
	}
	h.reached, h.by, h.back = r.pass, id, back
}

// phrase marks all results whose body contains a short root as whole words.
func (r *reach) phrase(words string, ended func() bool) {
	const longest = 100 // bytes
	if len(words) < 3 || len(words) > longest || reference.Structural(words) || r.tools[words] {
		return
	}
	id := int32(-1)
	for at := range r.results {
		if ended() {
			return
		}
		h := &r.results[at]
		if h.pass != r.pass || h.reached == r.pass || !reference.HoldsPhrase(h.call.Body, words) {
			continue
		}
		if id < 0 {
			id = r.id(words)
		}
		r.mark(int32(at), id, true)
	}
}

// older reports whether a's result comes before b's in the log.
func older(a, b *reduce.Call) bool { return a.Place().Compare(b.Place()) < 0 }
