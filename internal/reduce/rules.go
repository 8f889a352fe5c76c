package reduce

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
)

// rules decide the retention of each tool once: a policy may have hundreds of long
// globs, and a log as many thousand results.
type rules struct {
	of ToolResults
	// globs are the patterns of the policy, the first that matches first.
	globs   []glob
	decided map[string]Retention
}

func newRules(t ToolResults) *rules {
	r := &rules{of: t, decided: map[string]Retention{}}
	for pattern := range t.ByTool {
		r.globs = append(r.globs, compileGlob(pattern))
	}
	slices.SortFunc(r.globs, func(a, b glob) int {
		return cmp.Or(cmp.Compare(len(b.pattern), len(a.pattern)), cmp.Compare(a.pattern, b.pattern))
	})
	return r
}

// rulesOf keeps what was decided for as long as the policy stays the same.
func (c *Conversation) rulesOf(t ToolResults) *rules {
	if c.rules == nil || c.rules.of.Default != t.Default || !maps.Equal(c.rules.of.ByTool, t.ByTool) {
		c.rules = newRules(t)
	}
	return c.rules
}

// rule returns the retention of a tool.
func (r *rules) rule(tool string) Retention {
	rule, ok := r.decided[tool]
	if !ok {
		rule = r.decide(tool)
		r.decided[tool] = rule
	}
	return rule
}

func (r *rules) decide(tool string) Retention {
	if exact, ok := r.of.ByTool[tool]; ok {
		return exact
	}
	if i := slices.IndexFunc(r.globs, func(g glob) bool { return g.matches(tool) }); i >= 0 {
		return r.of.ByTool[r.globs[i].pattern]
	}
	return r.of.Default
}

// glob is a pattern of path.Match with what most names can be told by.
type glob struct {
	pattern string
	// prefix is what every match begins with, and bytes the least that it takes.
	prefix string
	bytes  int
}

func compileGlob(pattern string) glob {
	g := glob{pattern: pattern}
	prefix, _, _ := strings.Cut(pattern, "*")
	if at := strings.IndexAny(prefix, `?[\`); at >= 0 {
		prefix = prefix[:at]
	}
	g.prefix = prefix
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '*':
			continue
		case '\\':
			i++
		case '[':
			// A class is one character; where it ends need not be known for that.
			g.bytes++
			return g
		}
		g.bytes++
	}
	return g
}

func (g glob) matches(name string) bool {
	if len(name) < g.bytes || !strings.HasPrefix(name, g.prefix) {
		return false
	}
	ok, err := path.Match(g.pattern, name)
	return ok && err == nil
}
