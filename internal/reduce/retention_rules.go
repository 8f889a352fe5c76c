package reduce

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
)

// rules finds the retention of each tool. It caches it, because a policy may have hundreds of long globs, and a log
// many thousand results.
type rules struct {
	of ToolResults
	// globs are the patterns of the policy, in the order in which they are tried.
	globs   []glob
	decided map[string]decidedRule
	// never is set if the policy names a tool whose results are never evicted.
	never bool
}

// decidedRule is the retention of a tool. named is set if the policy names the tool or has a glob that matches it.
type decidedRule struct {
	Retention
	named bool
}

func newRules(t ToolResults) *rules {
	r := &rules{of: t, decided: map[string]decidedRule{}}
	for pattern, rule := range t.ByTool {
		r.globs = append(r.globs, compileGlob(pattern))
		r.never = r.never || rule.Never
	}
	slices.SortFunc(r.globs, func(a, b glob) int {
		return cmp.Or(cmp.Compare(len(b.pattern), len(a.pattern)), cmp.Compare(a.pattern, b.pattern))
	})
	return r
}

// rulesOf returns the rules of a policy. They are cached as long as the policy stays the same.
func (c *Conversation) rulesOf(t ToolResults) *rules {
	if c.rules == nil || c.rules.of.Default != t.Default || !maps.Equal(c.rules.of.ByTool, t.ByTool) {
		c.rules = newRules(t)
	}
	return c.rules
}

// rule returns the retention of a tool. If ended returns an error, the result is arbitrary and not cached.
func (r *rules) rule(tool string, ended func() error) decidedRule {
	rule, ok := r.decided[tool]
	if ok {
		return rule
	}
	if rule, ok = r.decide(tool, ended); ok {
		r.decided[tool] = rule
	}
	return rule
}

func (r *rules) decide(tool string, ended func() error) (rule decidedRule, ok bool) {
	if exact, ok := r.of.ByTool[tool]; ok {
		return decidedRule{exact, true}, true
	}
	for i := range r.globs {
		if ended() != nil {
			return decidedRule{}, false
		}
		if r.globs[i].matches(tool) {
			return decidedRule{r.of.ByTool[r.globs[i].pattern], true}, true
		}
	}
	return decidedRule{r.of.Default, false}, true
}

// glob is a pattern of path.Match, with texts by which most names are refused or accepted in time linear in the name.
// path.Match itself takes time in the product of both lengths.
type glob struct {
	pattern string
	// prefix is the beginning of every match, suffix its end, and between are texts that it has in this order without
	// overlaps.
	prefix, suffix string
	between        []string
	// bytes is the length of the shortest match.
	bytes int
	// stars is set if the pattern has nothing but stars and these texts.
	stars bool
	// none is set if the pattern is invalid, so that nothing matches.
	none bool
}

func compileGlob(pattern string) glob {
	_, err := path.Match(pattern, "")
	g := glob{pattern: pattern, none: err != nil}
	texts, star, one, class := []string{""}, false, false, false
	for i := 0; i < len(pattern) && !class; i++ {
		switch pattern[i] {
		case '*':
			texts, star = append(texts, ""), true
			continue
		case '?':
			texts, one = append(texts, ""), true
		case '[':
			// A class matches one character. Where the class ends in the pattern does not matter.
			one, class = true, true
			texts = append(texts, "")
		case '\\':
			if i++; i == len(pattern) {
				break
			}
			fallthrough
		default:
			texts[len(texts)-1] += pattern[i : i+1]
		}
		g.bytes++
	}
	g.stars = star && !one
	last := len(texts) - 1
	g.prefix = texts[0]
	if last > 0 {
		g.between, g.suffix = texts[1:last], texts[last]
	}
	return g
}

func (g *glob) matches(name string) bool {
	if g.none || len(name) < g.bytes || !strings.HasPrefix(name, g.prefix) || !strings.HasSuffix(name, g.suffix) {
		return false
	}
	rest := name[len(g.prefix) : len(name)-len(g.suffix)]
	for _, text := range g.between {
		_, after, ok := strings.Cut(rest, text)
		if !ok {
			return false
		}
		rest = after
	}
	if g.stars && !strings.Contains(name, "/") { // which no star matches
		return true
	}
	ok, err := path.Match(g.pattern, name)
	return ok && err == nil
}
