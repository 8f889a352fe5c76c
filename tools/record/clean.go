package main

import (
	"regexp"
	"slices"
	"strings"
)

// cleaner replaces what differs between machines and runs.
type cleaner struct {
	pattern     *regexp.Regexp
	replacement string
}

// newCleaners replaces directories, the longest first, and then what no two runs
// have in common.
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
		// How long a package's tests took, and whether they had to run at all.
		cleaner{regexp.MustCompile(`(?m)(\t)(?:\(cached\)|\d+\.\d+s)$`), "${1}0.010s"},
		cleaner{regexp.MustCompile(`(?m)^(\s*--- (?:PASS|FAIL|SKIP): .* \()\d+\.\d+s\)$`), "${1}0.00s)"},
		// Addresses and goroutines in stack traces.
		cleaner{regexp.MustCompile(`\b0x[0-9a-f]{6,16}\b`), "0xc000000000"},
		cleaner{regexp.MustCompile(`\bgoroutine \d+ `), "goroutine 7 "},
		cleaner{regexp.MustCompile(`\bin goroutine \d+\b`), "in goroutine 7"},
	)
}

// clean makes an output fit to be recorded. Invalid UTF-8, which the log does not
// take, is replaced.
func (p *place) clean(output string) string {
	output = strings.ToValidUTF8(output, "\uFFFD")
	for _, c := range p.cleaners {
		output = c.pattern.ReplaceAllString(output, c.replacement)
	}
	return output
}
