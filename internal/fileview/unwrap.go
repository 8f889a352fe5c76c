package fileview

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// wrappers are the texts before and after the output of a command or the text of a file. head must match what is
// above begin, because a file may contain such a line, too. end is empty if nothing follows.
var wrappers = []struct {
	begin, end string
	head       *regexp.Regexp
}{
	{"\nOutput:\n", "", regexp.MustCompile(`(?i)^\s*$|^Script |\b(?:exit code|exited with|wall time|chunk id)\b`)}, // Codex, after the exit code and the time
	{"<output>\n", "\n</output>", tags},
	{"<content>\n", "\n</content>", tags},
	{"<type>file</type>\n<content>", "\n</content>", tags}, // OpenCode of before version 1.3
	{"<file>\n", "\n</file>", tags},
	{"] Result:\n", "", regexp.MustCompile(`^\[`)},      // Cline, after the call
	{"OBSERVATION:\n", "", regexp.MustCompile(`^\s*$`)}, // SWE-agent
}

// tags matches the elements before the one with the text.
var tags = regexp.MustCompile(`^(?:\s*<(?:path|type|returncode|exit_code|warning|name|title|result|files?)>[^\n]*)*\s*$`)

// shellState is what SWE-agent writes after the output of a command.
var shellState = regexp.MustCompile(`(\n|^)\(Open file: [^\n]*\)\n\(Current directory: [^\n]*\)\nbash-\$\s*$`)

// wrapperBytes bounds how far into a result its wrapper may begin.
const wrapperBytes = 400

// leftOut matches what Codex writes in place of the omitted middle of a long output.
var leftOut = regexp.MustCompile(`…\d+ tokens truncated…|\n\[\.\.\. omitted \d+ of \d+ lines`)

// shortened matches what Codex writes before a long output whose middle it omits: how many lines there were.
var shortened = regexp.MustCompile(`^(?:Warning: truncated output \(original token count: \d+\)\n)?Total output lines: (\d{1,5})\n\n`)

// hole replaces a line that a tool omitted.
const hole = "\x00"

// withHole returns an output of the given number of lines, with a hole for each line that is not there in full.
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

// unwrap returns the output or file text in a result, without the tool's wrapper and remarks.
func unwrap(body string) string {
	body, _, _ = strings.Cut(body, "\n\n<system-reminder>")
	body, _, _ = strings.Cut(body, "\n\n--- Newly Discovered Project Context ---\n") // Gemini CLI
	if tail := body[max(0, len(body)-wrapperBytes):]; strings.HasPrefix(strings.TrimSpace(tail[strings.LastIndexByte(tail, '\n')+1:]), "bash-$") {
		body = body[:len(body)-len(tail)] + shellState.ReplaceAllString(tail, "$1")
	}
	head := "\n" + body[:min(len(body), wrapperBytes)]
	for _, w := range wrappers {
		at := strings.Index(head, w.begin)
		if at < 0 || !w.head.MatchString(head[1:max(at, 1)]) {
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

// outputIn returns the output in the JSON that early versions of Codex return for a command, or that a program
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
