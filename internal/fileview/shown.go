package fileview

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// wrappers are the texts that tools put before and after the output of a command or the text of a file; end
// is empty if nothing follows.
var wrappers = []struct{ begin, end string }{
	{"\nOutput:\n", ""}, // Codex, after the exit code and the time
	{"<output>\n", "\n</output>"},
	{"<content>\n", "\n</content>"},
	{"<type>file</type>\n<content>", "\n</content>"}, // OpenCode of before version 1.3
	{"<file>\n", "\n</file>"},
	{"] Result:\n", ""},    // Cline, after the call
	{"OBSERVATION:\n", ""}, // SWE-agent
}

// shellState is what SWE-agent writes after the output of a command.
var shellState = regexp.MustCompile(`(\n|^)\(Open file: [^\n]*\)\n\(Current directory: [^\n]*\)\nbash-\$\s*$`)

// wrapperBytes is how far into a result its wrapper begins at the most.
const wrapperBytes = 400

// leftOut matches what Codex writes in place of the omitted middle of a long output.
var leftOut = regexp.MustCompile(`…\d+ tokens truncated…|\n\[\.\.\. omitted \d+ of \d+ lines`)

// shortened matches what Codex writes before a long output of which it leaves out the middle: how many lines
// there were.
var shortened = regexp.MustCompile(`^(?:Warning: truncated output \(original token count: \d+\)\n)?Total output lines: (\d{1,5})\n\n`)

// hole is in the place of a line that a tool left out.
const hole = "\x00"

// withHole is an output of so many lines with a hole in the place of each that is not there in full.
func withHole(output, lines string) string {
	total, err := strconv.Atoi(lines)
	at := leftOut.FindStringIndex(output)
	if err != nil || at == nil || total > mostShown {
		return ""
	}
	head, tail := output[:strings.LastIndexByte(output[:at[0]], '\n')+1], output[at[1]:]
	_, tail, _ = strings.Cut(tail, "\n")
	missing := total - strings.Count(head, "\n") - strings.Count(strings.TrimSuffix(tail, "\n")+"\n", "\n")
	if missing < 1 {
		return head
	}
	return head + strings.Repeat(hole+"\n", missing) + tail
}

// unwrap is the output or file text in a result, without the tool's wrapper and remarks.
func unwrap(body string) string {
	body, _, _ = strings.Cut(body, "\n\n<system-reminder>")
	if tail := body[max(0, len(body)-wrapperBytes):]; strings.HasPrefix(strings.TrimSpace(tail[strings.LastIndexByte(tail, '\n')+1:]), "bash-$") {
		body = body[:len(body)-len(tail)] + shellState.ReplaceAllString(tail, "$1")
	}
	head := "\n" + body[:min(len(body), wrapperBytes)]
	for _, w := range wrappers {
		at := strings.Index(head, w.begin)
		if at < 0 {
			continue
		}
		if body = body[at+len(w.begin)-1:]; w.end != "" {
			body, _, _ = strings.Cut(body, w.end)
			if at := strings.LastIndex(body, "\n\n("); at >= 0 && strings.HasSuffix(body, ")") && w.end != "\n</output>" && !strings.Contains(body[at+2:], "\n") {
				body = body[:at+1] // OpenCode says there whether the file has more lines
			}
		}
		break
	}
	if strings.HasPrefix(head, "\nScript ") {
		body = strings.TrimPrefix(body, "\n") // between what a tool says of a program and what that printed
	}
	if strings.HasPrefix(body, "{") {
		body = outputIn(body)
	}
	if m := shortened.FindStringSubmatch(body); m != nil {
		return withHole(body[len(m[0]):], m[1])
	}
	if !strings.Contains(body, " tokens truncated…") && !strings.Contains(body, "\n[... omitted ") {
		return body
	}
	if cut := leftOut.FindStringIndex(body); cut != nil {
		body = body[:strings.LastIndexByte(body[:cut[0]], '\n')+1] // the line numbers of the rest are unknown
	}
	return body
}

// outputIn is the output in the JSON that early versions of Codex return for a command, or that a program
// printed.
func outputIn(body string) string {
	var result struct {
		Output   *string         `json:"output"`
		Metadata json.RawMessage `json:"metadata"`
		Exit     json.RawMessage `json:"exit_code"`
	}
	if json.Unmarshal([]byte(body), &result) != nil || result.Output == nil || result.Metadata == nil && result.Exit == nil {
		return body
	}
	return *result.Output
}

// shown are lines of a file from one on.
type shown struct {
	from  int // 0 is not known
	lines []string
}

// numbered matches what a tool writes before a line of a file: its number, and in Oh My Pi a checksum of
// its text.
var numbered = regexp.MustCompile(`^ *(\d{1,7})(?:→| \| ?|\||:|\t|\.(?: |$)|[a-z]{2}\|| )`)

// saysNothing reports whether a text of Claude Code shows nothing of a file, but says why.
func saysNothing(text string) bool {
	for _, begin := range []string{"<system-reminder>Warning: the file exists but ", "Wasted call — file unchanged since ", "File unchanged since last read. "} {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
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

// snippetIn are the lines around an edit that an editor shows after it.
func snippetIn(body string) (out shown) {
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

// parseShown parses the lines of a file that a text shows. Line numbers in the text count more than from,
// and lines without a number among numbered ones are the tool's own. Numbers with a full stop, which a list
// in the file may have, too, count only if they begin at the line asked for and a line after one is empty
// or indented.
func parseShown(text string, from int) shown {
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(all) > 1 && strings.HasPrefix(all[0], numbersFollow) {
		all = all[1:]
	}
	out := shown{}
	filled := 0
	listed, code := false, false // about numbers with a full stop
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
		if out.from == 0 {
			out.from = max(n, 1)
		}
		if n != out.from+len(out.lines) {
			continue // a line of the file that looks like one, or after a gap
		}
		rest := line[len(m[0]):]
		if strings.Contains(m[0], ".") {
			listed = true
			code = code || rest == "" || rest[0] == ' ' || rest[0] == '\t'
		}
		out.lines = append(out.lines, rest)
		mark = m[0]
	}
	unspace(out.lines, mark)
	if listed && (!code || from > 0 && from != out.from) {
		return shown{from, all}
	}
	if last := len(out.lines) - 1; listed && out.lines[last] == "" {
		out.lines = out.lines[:last] // that tool shows an empty line after the final newline
	}
	own := max(filled/5, 3) // how many lines may be the tool's own
	if 2*len(out.lines) > filled && len(out.lines)+own >= filled {
		return out
	}
	return shown{from, all}
}

// unspace removes the blank that some tools write between the colon or the bar after a number and the line:
// OpenCode does, SWE-agent and Crush do not. It is there if every line that is not empty begins with one. Lines
// that are all indented do so in any case; after a bar, an odd width of the smallest indentation says that the
// blank is the tool's, unless the number begins with a zero, as only OpenCode writes it.
func unspace(lines []string, mark string) {
	bar := strings.HasSuffix(mark, "|") && len(strings.Trim(mark, " 0123456789")) == 1
	if !bar && !strings.HasSuffix(mark, ":") {
		return
	}
	least := -1
	for _, line := range lines {
		if width := len(line) - len(strings.TrimLeft(line, " ")); line != "" && (least < 0 || width < least) {
			least = width
		}
	}
	if least < 1 || bar && least%2 == 0 && !strings.HasPrefix(mark, "0") {
		return
	}
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, " ")
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
