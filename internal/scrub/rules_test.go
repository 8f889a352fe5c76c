package scrub

import (
	"slices"
	"strings"
	"testing"
)

// TestPatternsCompile compiles all patterns, which are otherwise compiled at their first use.
func TestPatternsCompile(t *testing.T) {
	for _, r := range builtin {
		if got := r.pattern.compiled().String(); got != r.pattern.String() {
			t.Errorf("%s: %q was compiled, and %q is said", r.name, got, r.pattern)
		}
	}
}

// TestCandidates compares the table of byte pairs with the rules' starts, for every pair.
func TestCandidates(t *testing.T) {
	for pair := range 1 << 16 {
		a, b := byte(pair>>8), byte(pair)
		text := string([]byte{a, b})
		var want []string
		for i := range builtin {
			r := &builtin[i]
			if slices.ContainsFunc(r.starts, func(start string) bool {
				return start[:2] == text || r.fold && strings.EqualFold(start[:2], text)
			}) {
				want = append(want, r.name)
			}
		}
		var got []string
		for _, r := range candidates(a, b) {
			got = append(got, r.name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
