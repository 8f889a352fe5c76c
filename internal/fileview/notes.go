package fileview

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// noteLine matches a line that a tool writes above the text of a file. A number in it is that of the first line.
var noteLine = regexp.MustCompile(`^[ \t]*(?:` + strings.Join([]string{
	`IMPORTANT: (?:The file|File) content (?:has been )?truncated\.`, // Gemini CLI, Roo Code
	`Status: Showing lines (\d{1,7})-\d+ of \d+ total lines\.`,
	`(?:Action: )?To read more(?:: | of the file, ).*`,
	`--- FILE CONTENT \(truncated\) ---`,
	`\[WARNING: This file was truncated\. .*\]`,
	`Showing lines (\d{1,7})-\d+ of (?:at least )?\d+ total lines\.`,    // Qwen Code
	"File: `[^`]*`\\. Lines (\\d{1,7}) to \\d+ \\(\\d+ lines total\\):", // VS Code
	`### \S.* \(lines (\d{1,7})-(?:\d+|end)\)`,                          // Goose
	`Read file .+, lines (\d{1,7})-\d+`,                                 // OpenCode 2
	`Contents of .+, from line (\d{1,7})-\d+\b.*:`,                      // Cursor
	`File Path: .*`, `Total (?:Lines|Bytes): \d+`, `Showing lines (\d{1,7}) to \d+`, // Antigravity
	`The following code has been modified to include a line number before every line, .*`,
	`\[Reading \d+ lines? from (?:start|line (\d{1,7})) \(.*\)\]`, // Desktop Commander, which counts from 0
}, "|") + `)[ \t]*$`)

// mostNotes bounds the lines above the text of a file.
const mostNotes = 12

// lastNote matches a line that a tool writes below the text of a file.
var lastNote = regexp.MustCompile(`^(?:[\[(].*(?:\blines?\b|\btruncated\b|\boffset\b).*[\])]|Included ranges: .* \(total: \d+ lines\))$`)

// plain is the text in the result of a tool that reads one file, without what the tool says itself, and the operation
// with what the tool says of which lines these are.
func plain(op fileop.Operation, text string) (fileop.Operation, string) {
	op, text = inJSON(op, text)
	op, text = dumped(op, text)
	text, noted := withoutNotes(&op, text)
	text = withoutLastNote(&op, text)
	return op, unfenced(op.Path, text, noted)
}

// withoutNotes is a text without the notes above it, and whether there are any.
func withoutNotes(op *fileop.Operation, text string) (string, bool) {
	rest, noted, bracketed := strings.TrimPrefix(text, "\n"), false, false
	for range mostNotes {
		line, after, _ := strings.Cut(rest, "\n")
		if next, _, _ := strings.Cut(after, "\n"); noted && line == "" && noteLine.MatchString(next) {
			rest = after
			continue
		}
		m := noteLine.FindStringSubmatch(line)
		if m == nil && !names(line, op.Path) {
			break
		}
		for _, number := range m[min(1, len(m)):] {
			if n, err := strconv.Atoi(number); err == nil {
				if op.From, op.All = max(n, 1), false; strings.HasPrefix(line, "[Reading ") {
					op.From = n + 1
				}
			}
		}
		op.All = op.All && !strings.Contains(line, "truncated")
		rest, noted, bracketed = after, true, strings.HasPrefix(line, "[")
	}
	if !noted {
		return text, false
	}
	if after, ok := strings.CutPrefix(rest, "\n---\n\n"); ok {
		return after, true
	}
	if bracketed {
		rest = strings.TrimPrefix(rest, "\n")
	}
	return rest, true
}

// names reports whether a line says no more than the name of a file.
func names(line, path string) bool {
	for _, begin := range []string{"File: ", "### "} {
		if name, ok := strings.CutPrefix(line, begin); ok && name != "" {
			return name == path || strings.HasSuffix(path, "/"+name) || strings.HasSuffix(name, "/"+path)
		}
	}
	return false
}

// withoutLastNote is a text without the note below it.
func withoutLastNote(op *fileop.Operation, text string) string {
	body := strings.TrimRight(text, "\n")
	at := strings.LastIndexByte(body, '\n')
	line := body[at+1:]
	if at < 1 || !lastNote.MatchString(line) || body[at-1] != '\n' && !strings.HasPrefix(line, "[File content truncated at line ") && !strings.HasPrefix(line, "[Output truncated. ") {
		return text
	}
	op.All = op.All && strings.Contains(line, " total.")
	return strings.TrimSuffix(body[:at], "\n") + "\n"
}

// prose are the ends of the names of files that may themselves begin and end with a fence.
var prose = []string{".md", ".mdx", ".markdown", ".qmd", ".rmd", ".rst", ".txt", ".adoc", ".prompt", ""}

// fence is a line before a text that a tool shows as Markdown.
var fence = regexp.MustCompile("^(`{3,})[^`\\s]*$")

// unfenced is a text without the fences around it.
func unfenced(name, text string, noted bool) string {
	first, rest, _ := strings.Cut(text, "\n")
	m := fence.FindStringSubmatch(first)
	if m == nil || !noted && slices.Contains(prose, strings.ToLower(path.Ext(name))) {
		return text
	}
	body := strings.TrimRight(rest, "\n")
	if at := strings.LastIndexByte(body, '\n'); strings.TrimSpace(body[at+1:]) == m[1] {
		return body[:at+1]
	}
	return text
}

// jsonNames are the ends of the names of files that may be JSON themselves.
var jsonNames = []string{"json", "rc", "lock", "map", "ipynb", "manifest", "jsonc", "json5", "har", "state", "workspace", "avsc", "sarif"}

// beside are the members of an object with the text of a file that say nothing but what file it is, and which part of
// it.
var beside = []string{
	"path", "filepath", "file", "filename", "name", "uri", "encoding", "size", "bytes", "lines", "linecount", "totallines", "startline", "endline", "offset", "limit",
	"truncated", "istruncated", "success", "ok", "status", "error", "message", "type", "mimetype", "language",
}

// textNames are the members with the text of a file.
var textNames = []string{"contents", "content", "text", "filecontent"}

// inJSON is the text in an object, or in a list of one part, where a tool returns these.
func inJSON(op fileop.Operation, text string) (fileop.Operation, string) {
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[{") {
		return op, text
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal([]byte(text), &parts) == nil && len(parts) == 1 && parts[0].Type == "text" {
		return op, parts[0].Text
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &members) != nil {
		return op, text
	}
	a := fileop.NewArguments(members)
	found := a.Text(textNames...)
	if found == "" {
		return op, text
	}
	if slices.ContainsFunc(jsonNames, func(end string) bool { return strings.HasSuffix(strings.ToLower(op.Path), end) }) {
		for name := range a {
			if !a.Has("path", "filepath", "file") || !slices.Contains(beside, name) && !slices.Contains(textNames, name) {
				return op, text
			}
		}
	}
	if n := a.Number("startline", "startlineoneindexed"); n > 0 {
		op.From = n
	}
	op.All = op.All && string(a["truncated"]) != "true" && string(a["istruncated"]) != "true"
	return op, found
}

// dumpHead is above the text in the fields of a result as Mistral's Vibe writes them; dumpTail is below it.
var (
	dumpHead = regexp.MustCompile(`^(?:file_)?path: [^\n]*\ncontent: `)
	dumpTail = regexp.MustCompile(`\n(?:offset: (\d{1,7})\n)?(lines_read|num_lines): \d+\n(?:[a-z_]+: [^\n]*(?:\n|$))*`)
)

// dumped is the text among the fields of a result.
func dumped(op fileop.Operation, text string) (fileop.Operation, string) {
	head := dumpHead.FindString(text[:min(len(text), wrapperBytes)])
	if head == "" {
		return op, text
	}
	from := max(len(head), len(text)-wrapperBytes)
	m := dumpTail.FindStringSubmatchIndex(text[from:])
	if m == nil {
		return op, text
	}
	tail := text[from:]
	if tail[m[4]:m[5]] == "lines_read" { // without numbers before the lines; it counts from 0
		if n, err := strconv.Atoi(tail[max(m[2], 0):max(m[3], 0)]); err == nil {
			op.From = n + 1
		} else if !op.All {
			op.From = 0
		}
	}
	op.All = op.All && !strings.Contains(tail[m[0]:], "was_truncated: True")
	return op, strings.TrimSuffix(text[len(head):from+m[0]], "\n") + "\n"
}
