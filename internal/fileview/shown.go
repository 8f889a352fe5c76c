package fileview

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// shown are lines of a file from one on.
type shown struct {
	from  int // 0 is not known
	lines []string
}

// numbered matches what a tool writes before a line of a file: its number, and in Oh My Pi a checksum of
// its text.
var numbered = regexp.MustCompile(`^ *(\d{1,7})(?:→| \| ?|\||:|\t|\.(?: |$)|[a-z]{2}\|| )`)

// nothing matches a text that shows nothing of a file, but says why.
var nothing = regexp.MustCompile(`^\s*(?:` + strings.Join([]string{
	`<system-reminder>Warning: the file exists but `, `Wasted call — file unchanged since `, `\[?File unchanged since last read`, // Claude Code, Qwen Code
	`<vibe_warning>Warning: `, `\(The file .* exists, but `, `Note: File is empty`, // Vibe, VS Code, Roo Code
	`SUCCESS: File outline retrieved`, `# File outline for `, // Zed
	`\[\[NOTE\] This file read has been removed`, `<cell id="`,
}, "|") + `)`)

// saysNothing reports whether a text shows nothing of a file: it says why, or is an error.
func saysNothing(text string) bool {
	const mostSaid = 3 // lines of an error
	return nothing.MatchString(text[:min(len(text), headBytes)]) || refused.MatchString(text[:min(len(text), headBytes)]) && strings.Count(strings.TrimSpace(text), "\n") < mostSaid
}

// blankWidth is the width to which a number with just a blank after it must be padded to count as a line
// number: without padding, many lines begin with a number and a blank.
const blankWidth = 7

// numberOf is what a tool wrote before a line, and the number in it; nil where there is none.
func numberOf(line string) []string {
	m := numbered.FindStringSubmatch(line)
	if len(m) > 0 && strings.TrimLeft(m[0], " ") == m[1]+" " && len(m[0]) != blankWidth {
		return nil
	}
	return m
}

// numbersFollow begins what editors that take str_replace write above numbered lines.
const numbersFollow = "Here's the result of running `cat -n` on "

// snippetOfLines matches what Qwen Code writes above the lines around an edit.
var snippetOfLines = regexp.MustCompile(`Showing lines (\d{1,7})-(\d{1,7}) of \d+ from the edited file:\n\n---\n\n`)

// snippetIn are the lines around an edit that an editor shows after it.
func snippetIn(body string) (out shown) {
	if m := snippetOfLines.FindStringSubmatchIndex(body[:min(len(body), headBytes)]); m != nil {
		first, _ := strconv.Atoi(body[m[2]:m[3]]) // digits
		last, _ := strconv.Atoi(body[m[4]:m[5]])
		lines := strings.Split(body[m[1]:], "\n")
		if n := last - first + 1; first > 0 && n > 0 && n <= len(lines) {
			return shown{first, lines[:n]}
		}
	}
	_, text, ok := strings.Cut(body[:min(len(body), wholeBytes)], numbersFollow)
	_, text, _ = strings.Cut(text, "\n")
	if !ok {
		return out
	}
	for line := range strings.SplitSeq(text, "\n") {
		m := numberOf(line)
		n := 0
		if m != nil {
			n, _ = strconv.Atoi(m[1])
		}
		if n == 0 || len(out.lines) > 0 && n != out.from+len(out.lines) {
			break
		}
		if len(out.lines) == 0 {
			out.from = n
		}
		out.lines = append(out.lines, line[len(m[0]):])
	}
	return out
}

// eliding is what SWE-agent writes in the place of lines of a file that is long.
var eliding = regexp.MustCompile(`(?m)^ *\d{1,7} \.\.\. eliding lines \d+-\d+ \.\.\.\r?\n`)

// parseShown parses the lines of a file that a text shows: runs of them that follow each other. Line numbers in the
// text count more than from, and lines without a number among numbered ones are the tool's own. Numbers with a full
// stop, which a list in the file may have, too, count only if they begin at the line asked for and a line after one is
// empty or indented.
func parseShown(text string, from int) []shown {
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(all) > 1 && strings.HasPrefix(all[0], numbersFollow) {
		all = all[1:]
	}
	var runs []shown
	filled, lines := 0, 0
	listed, code := false, false // about numbers with a full stop
	after := byte(0)             // what is after the numbers
	mark := ""                   // the newest number, with what is after it
	for _, line := range all {
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "<") {
			filled++
		}
		m := numberOf(line)
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(m[1])
		rest, last := line[len(m[0]):], m[0][len(m[0])-1]
		switch run := len(runs) - 1; {
		case run < 0:
			runs, after = append(runs, shown{from: max(n, 1)}), last
		case n > runs[run].from+len(runs[run].lines) && last == after && !listed: // what is between is left out
			runs = append(runs, shown{from: n})
		}
		run := &runs[len(runs)-1]
		if n != run.from+len(run.lines) {
			continue // a line of the file that looks like one
		}
		if strings.Contains(m[0], ".") {
			listed = true
			code = code || rest == "" || rest[0] == ' ' || rest[0] == '\t'
		}
		run.lines = append(run.lines, rest)
		mark = m[0]
		lines++
	}
	unspace(runs, mark)
	if listed && (!code || from > 0 && from != runs[0].from) {
		return []shown{{from, all}}
	}
	if listed {
		run := &runs[len(runs)-1]
		if last := len(run.lines) - 1; run.lines[last] == "" {
			run.lines = run.lines[:last] // that tool shows an empty line after the final newline
		}
	}
	own := max(filled/5, 3) // how many lines may be the tool's own
	if 2*lines > filled && lines+own >= filled {
		return runs
	}
	return []shown{{from, all}}
}

// unspace removes the blank that some tools write between the colon or the bar after a number and the line:
// OpenCode does, SWE-agent and Crush do not. It is there if every line that is not empty begins with one. Lines
// that are all indented do so in any case; after a bar, an odd width of the smallest indentation says that the
// blank is the tool's, unless the number begins with a zero, as only OpenCode writes it.
func unspace(runs []shown, mark string) {
	bar := strings.HasSuffix(mark, "|") && len(strings.Trim(mark, " 0123456789")) == 1
	if !bar && !strings.HasSuffix(mark, ":") {
		return
	}
	least := -1
	for _, run := range runs {
		for _, line := range run.lines {
			if width := len(line) - len(strings.TrimLeft(line, " ")); line != "" && (least < 0 || width < least) {
				least = width
			}
		}
	}
	if least < 1 || bar && least%2 == 0 && !strings.HasPrefix(mark, "0") {
		return
	}
	for _, run := range runs {
		for i, line := range run.lines {
			run.lines[i] = strings.TrimPrefix(line, " ")
		}
	}
}

// match matches a line that a search found: its file (empty if one file was searched), its number and its
// text.
var match = regexp.MustCompile(`^(?:((?:[A-Za-z]:[\\/])?[^\s:][^:\n]*):)?(\d{1,7})[:-](.*)$`)

// around parses a context line of a search, FILE-NUMBER-TEXT. File names may contain "-", too, so FILE must
// be one of the files with a match.
func around(text string, named map[string]bool) (m []string) {
	for at := 0; ; {
		next := strings.IndexByte(text[at:], '-')
		if next < 0 || at+next > longestName {
			return nil
		}
		at += next + 1
		digits := len(text[at:]) - len(strings.TrimLeft(text[at:], "0123456789"))
		if end := at + digits; digits > 0 && digits <= 7 && end < len(text) && text[end] == '-' && named[text[:at-1]] {
			return []string{text, text[:at-1], text[at:end], text[end+1:]}
		}
	}
}

// longestName bounds the length of a file name in the result of a search.
const longestName = 512

// found records the lines that a search shows.
func (v *Views) found(op fileop.Operation, body string) {
	const mostFound = 64 // files; a wider search is not about files that are worked on
	var run region
	name, files := "", 0
	end := func() {
		if len(run.lines) > 0 {
			f := v.file(op.Dir, name)
			f.found = v.now()
			v.show(f, regionOf(run.from, run.lines))
		}
		run = region{}
	}
	lines := strings.Split(body, "\n")
	lines = lines[:min(len(lines), mostShown)]
	matches, named := make([][]string, len(lines)), map[string]bool{}
	for i, text := range lines {
		if m := match.FindStringSubmatch(text); len(m) > 0 && (m[1] != "" || op.Path != "") && !strings.ContainsAny(m[1], "{}()<>\"'") {
			matches[i], named[m[1]] = m, true
		}
	}
	delete(named, "")
	for i, m := range matches {
		if m == nil && len(named) > 0 {
			m = around(lines[i], named)
		}
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(m[2])
		file := cmp.Or(m[1], op.Path)
		if n == 0 {
			continue
		}
		if file != name || n != run.end() || len(run.lines) == 0 {
			end()
			if file != name {
				files++
			}
			if files > mostFound {
				return
			}
			name, run.from = file, n
		}
		run.lines = append(run.lines, v.fresh([]string{m[3]}, false)...)
	}
	end()
}
