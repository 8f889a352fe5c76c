package main

import (
	"regexp"
	"slices"
	"strings"
)

// cleaner replaces text that differs between machines or runs.
type cleaner struct {
	pattern     *regexp.Regexp
	replacement string
}

// newCleaners returns cleaners for directories, the longest first, and then for values that differ between
// runs.
func newCleaners(directories map[string]string) []cleaner {
	var names []string
	for name := range directories {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	var out []cleaner
	for _, name := range names {
		out = append(out, cleaner{regexp.MustCompile(regexp.QuoteMeta(name) + `\b`), directories[name]})
	}
	return append(out,
		// The durations of tests, and whether their results were cached.
		cleaner{regexp.MustCompile(`(?m)(\t)(?:\(cached\)|\d+\.\d+s)$`), "${1}0.010s"},
		cleaner{regexp.MustCompile(`(?m)^(\s*--- (?:PASS|FAIL|SKIP): .* \()\d+\.\d+s\)$`), "${1}0.00s)"},
		// Addresses and goroutines in stack traces.
		cleaner{regexp.MustCompile(`\b0x[0-9a-f]{6,16}\b`), "0xc000000000"},
		cleaner{regexp.MustCompile(`\bgoroutine \d+ `), "goroutine 7 "},
		cleaner{regexp.MustCompile(`\bin goroutine \d+\b`), "in goroutine 7"},
	)
}

// clean prepares an output for recording. It also replaces invalid UTF-8, which the log does not accept.
func (p *place) clean(output string) string {
	output = strings.ToValidUTF8(output, "\uFFFD")
	for _, c := range p.cleaners {
		output = c.pattern.ReplaceAllString(output, c.replacement)
	}
	return output
}
