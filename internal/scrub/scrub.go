// Package scrub replaces credentials in texts by marks that name their kind: tokens, keys and passwords of
// known shapes, and matches of an operator's patterns.
//
// It recognises shapes, not meanings: a password that looks like a word is not found.
package scrub

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// markStart begins every mark. No rule matches a mark.
const markStart = "[scrubbed:"

func markOf(name string) string { return markStart + name + "]" }

// Scrubber replaces credentials. It may be used from any goroutine. A nil Scrubber
// replaces nothing.
type Scrubber struct {
	custom  []pattern
	observe func(rule string, n int)
	rules   string
}

// pattern is an operator's rule. group is the group to replace; 0 is the whole match.
type pattern struct {
	name   string
	regexp *regexp.Regexp
	group  int
}

// Options configure a Scrubber.
type Options struct {
	// Patterns are regular expressions (RE2) by name, in addition to the built-in rules. If one has groups,
	// only the first group is replaced.
	Patterns map[string]string
	// Observe, if set, is called with the number of credentials that a rule replaced in a text. It may be
	// called from any goroutine, and must not block.
	Observe func(rule string, n int)
}

// New returns a Scrubber. An invalid pattern gives an *eventlog.InvalidError whose field is the pattern's
// name.
func New(o Options) (*Scrubber, error) {
	s := &Scrubber{observe: o.Observe}
	if s.observe == nil {
		s.observe = func(string, int) {}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Patterns)) {
		p, err := newPattern(name, o.Patterns[name])
		if err != nil {
			return nil, err
		}
		s.custom = append(s.custom, p)
	}
	s.rules = rulesOf(s.custom)
	return s, nil
}

// builtinVersion is raised when the built-in rules change otherwise than in their patterns.
const builtinVersion = 1

// Rules identifies the rules of a Scrubber: equal values mean that the same is found.
func (s *Scrubber) Rules() string { return s.rules }

func rulesOf(custom []pattern) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n", builtinVersion)
	for _, r := range builtin {
		fmt.Fprintf(h, "%s %q %q\n", r.name, r.starts, r.pattern)
	}
	for _, p := range custom {
		fmt.Fprintf(h, "%s %q\n", p.name, p.regexp)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

var validName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

func newPattern(name, text string) (pattern, error) {
	bad := func(reason string, args ...any) (pattern, error) {
		return pattern{}, &eventlog.InvalidError{Field: name, Reason: fmt.Sprintf(reason, args...)}
	}
	if !validName.MatchString(name) {
		return bad("the name of a pattern must match %s", validName)
	}
	if slices.ContainsFunc(builtin, func(r rule) bool { return r.name == name }) {
		return bad("is the name of a built-in rule")
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return bad("%v", err)
	}
	if compiled.MatchString("") {
		return bad("must not match the empty text")
	}
	if compiled.MatchString(markOf(name)) {
		return bad("must not match %s, which replaces what it finds", markOf(name))
	}
	return pattern{name, compiled, min(1, compiled.NumSubexp())}, nil
}

// Text returns text with its credentials replaced.
func (s *Scrubber) Text(text string) string {
	if s == nil {
		return text
	}
	text = s.known(text)
	for _, p := range s.custom {
		var out replaced
		for _, at := range p.regexp.FindAllStringSubmatchIndex(text, -1) {
			// The group may be empty, or not part of the match.
			if begin, end := at[2*p.group], at[2*p.group+1]; begin < end {
				out.replace(text, begin, end, p.name)
			}
		}
		if out.n > 0 {
			s.observe(p.name, out.n)
			text = out.text(text)
		}
	}
	return text
}

// known replaces the matches of built-in rules, in one pass.
func (s *Scrubber) known(text string) string {
	var out replaced
	var from map[*rule]int // by rule, where its next match may begin
	for i := 0; i+1 < len(text); i++ {
		for _, r := range candidates(text[i], text[i+1]) {
			if i < from[r] {
				continue
			}
			begin, end, next, ok := r.find(text, i)
			if ok {
				out.replace(text, begin, end, r.name)
				s.observe(r.name, 1)
				i = end - 1
				break
			}
			if next > i {
				if from == nil {
					from = map[*rule]int{}
				}
				from[r] = next
			}
		}
	}
	return out.text(text)
}

// replaced is a text whose credentials are being replaced from its beginning on.
type replaced struct {
	out  strings.Builder
	from int // the offset in the text up to which out is written
	n    int
}

func (r *replaced) replace(text string, begin, end int, name string) {
	r.out.WriteString(text[r.from:begin])
	r.out.WriteString(markOf(name))
	r.from = end
	r.n++
}

func (r *replaced) text(text string) string {
	if r.n == 0 {
		return text
	}
	return r.out.String() + text[r.from:]
}
