package fileop

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// startNames are the names of arguments with the first line to read, and partNames those of arguments that may
// limit the reading to a part of the file.
var (
	startNames = []string{"offset", "startline", "start", "linestart", "lineoffset", "startlineoneindexed", "firstline", "fromline"}
	partNames  = []string{
		"limit", "endline", "end", "lineend", "endlineoneindexedinclusive", "nlines", "head", "viewrange", "readrange", "length", "maxlines", "lastline",
		"toline", "maxlinescount", "linecount", "numlines",
	}
)

// selecting are parts of the names of arguments that select lines in some other way.
var selecting = []string{"range", "line", "query", "regex", "pattern", "symbol", "anchor", "section", "heading", "filter", "search", "cell", "page", "tail", "from", "until", "selector"}

// selected matches a path that ends with the lines to read, as in Oh My Pi: a.go:41-43.
var selected = regexp.MustCompile(`^(.*[^:/\\]):(?:(\d{1,7})(?:[-+]\d{0,7})?|raw)$`)

// read returns the operation of a call that shows a file or lines of it. From is 0 where only the result can say
// which lines.
func (a Arguments) read(tool, path string) Operation {
	op := Operation{Kind: Read, Path: path, From: 1, All: true}
	if m := selected.FindStringSubmatch(path); m != nil {
		op.Path = m[1]
		if n, err := strconv.Atoi(m[2]); err == nil {
			op.From, op.All = max(n, 1), false
			return op
		}
	}
	switch {
	case a.set("shouldreadentirefile"):
	case tool == "open" || a.negative(startNames...) || a.selects():
		op.From, op.All = 0, false
	default:
		op.From = max(a.Number(startNames...), 1)
		for _, name := range []string{"viewrange", "readrange"} {
			if lines := a.numbers(name); len(lines) > 0 {
				op.From = max(op.From, lines[0])
			}
		}
		op.All = op.From == 1 && !a.Has(partNames...)
		if strings.Contains(tool, "serena") && a.Has("startline") {
			op.From = a.Number("startline") + 1 // it counts from 0
		}
	}
	return op
}

// selects reports whether an argument selects lines in a way that is not followed.
func (a Arguments) selects() bool {
	if mode := a.word("mode"); a.Has("mode") && !slices.Contains([]string{"", "slice", "text", "full", "raw", "line", "lines", "file"}, mode) {
		return true
	}
	for name, raw := range a {
		if slices.Contains(startNames, name) || slices.Contains(partNames, name) || slices.Contains(pathNames, name) || len(raw) == 0 {
			continue
		}
		if text := string(raw); text == "null" || text == "false" || text == "true" || text == `""` || text == "[]" {
			continue
		}
		if slices.ContainsFunc(selecting, func(part string) bool { return strings.Contains(name, part) }) {
			return true
		}
	}
	return false
}
