package fileview

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// outcome are the operations of a call as its result says that they were done. What a command or a program does is
// not in question here: its result is what it prints.
func outcome(c Call) []fileop.Operation {
	edits := 0
	for _, op := range c.Operations {
		if op.Part || op.Kind == fileop.Window || op.Kind == fileop.Splice {
			return c.Operations
		}
		if !op.Shows() {
			edits++
		}
	}
	if edits == 0 {
		return c.Operations
	}
	first := c.Operations[0]
	one := !slices.ContainsFunc(c.Operations, func(op fileop.Operation) bool { return op.Path != first.Path || op.To != "" })
	if text, ok := final(c.Body, first.Path); ok && one {
		return []fileop.Operation{{Kind: fileop.Write, Path: first.Path, Dir: first.Dir, New: text}}
	}
	if !doubtful(c.Body) {
		return c.Operations
	}
	var out []fileop.Operation
	once := map[string]bool{"": true}
	for _, op := range c.Operations {
		for _, name := range []string{op.Path, op.To} {
			if !once[name] && !op.Shows() {
				once[name] = true
				out = append(out, fileop.Operation{Kind: fileop.Change, Path: name, Dir: op.Dir})
			}
		}
	}
	return out
}

// updatedCode is above the parts of a file that Gemini CLI shows after an edit.
const updatedCode = "Here is the updated code:\n"

// final is the text of a file after an edit, in a result that has it. A part of a file that a result shows may look like
// that, too.
func final(body, path string) (string, bool) {
	before, text, ok := strings.Cut("\n"+body, "\n<final_file_content path=\"")
	name, text, ok2 := strings.Cut(text, "\">\n")
	end := strings.LastIndex(text, "\n</final_file_content>")
	if !ok || !ok2 || end < 0 || !meant(path, name) || strings.Contains(before, updatedCode) {
		return "", false
	}
	return text[:end] + "\n", true
}

const (
	// What Gemini CLI, Cline and Roo Code say where a user changed an edit before it was done.
	geminiUser, clineUser, rooUser = "User modified the `", "The user made the following updates to your content", `"user_edits":`
	// inaccurate is in what Antigravity says of an edit whose text was not quite that of the file.
	inaccurate = "inaccuracies"
	// headBytes is how much of a result says whether an edit was done.
	headBytes = 400
)

var (
	// refused matches what a tool says that did not do its work, at the beginning of a result.
	refused = regexp.MustCompile(`^\s*(?:\{?"?\[?(?i:error)\b|<(?:tool_use_)?error>|(?:Failed|Unable) to |Could ?n[o']t |Cannot |Invalid |Permission denied|` +
		`No (?:match|replacement|changes?|occurrences?|edits?)\b|The tool execution failed|The user (?:denied|rejected|doesn't want)|Found (?:\d+|multiple) (?:matches|occurrences)|String to replace not found|Tool \[\w+\] was not executed)`)
	// partly matches what a tool says that did not do all of what it was to do, or something else.
	partly = regexp.MustCompile(`(?i)\bedit(?:\(s\)|s)? failed|failed to (?:apply|match|find)|partially applied|could not (?:find|be found|apply|be applied)|no match(?:es)? (?:was |were )?found|` +
		`(?:was|were|is) not (?:applied|found|unique)|not found in (?:the )?file|(?:string|text|match|content|block) not found|no such file|does not exist|did(?: not|n't) match|appears \d+ times|multiple (?:matches|occurrences)|error applying|verification failed|` + inaccurate + `|"(?:success|applied)": ?false`)
	// excerpt matches where a result begins to show a file.
	excerpt = regexp.MustCompile("\n *\\d+[\t|:→]|```|\n@@|\n<|Here's the result of running|Here is the updated code|Showing lines")
)

// refusals begin the results of edits that did nothing, of which some transcripts do not say that they failed.
var refusals = []string{
	"<tool_use_error>",                                     // Claude Code
	"apply_patch verification failed", "execution error: ", // Codex
	"No replacement was performed", "OBSERVATION:\nNo replacement was performed", // SWE-agent, and others with its editor
}

// didNothing reports whether a result says that its call changed nothing.
func didNothing(body string) bool {
	return slices.ContainsFunc(refusals, func(begin string) bool { return strings.HasPrefix(body, begin) })
}

// doubtful reports whether a result says that an edit was not done, or not as it was to be.
func doubtful(body string) bool {
	if strings.Contains(body, geminiUser) || strings.Contains(body, clineUser) || strings.Contains(body, rooUser) {
		return true
	}
	if at := strings.Index(body[:min(len(body), wrapperBytes)], "] Result:\n"); at >= 0 {
		body = body[at+len("] Result:\n"):]
	}
	head := body[:min(len(body), headBytes)]
	if at := excerpt.FindStringIndex(head); at != nil {
		head = head[:at[0]]
	}
	return refused.MatchString(head) || partly.MatchString(head)
}

// hunk is a part of a file that a result shows as it was and as it is, from a line on.
type hunk struct {
	from     int
	old, new []string
}

// hunkHead is above each hunk.
var hunkHead = regexp.MustCompile(`^@@ -\d{1,7}(?:,(\d{1,7}))? \+(\d{1,7})(?:,(\d{1,7}))? @@`)

// hunks are those of the one diff in a result, of the file that the call names; none if they are not all there.
func hunks(body, path string) (out []hunk) {
	if !strings.Contains(body, "\n@@ -") || doubtful(body) && !strings.Contains(body[:min(len(body), headBytes)], inaccurate) {
		return nil
	}
	lines, files := strings.Split(body, "\n"), 0
	for at := 0; at < len(lines); at++ {
		if name, ok := strings.CutPrefix(lines[at], "+++ "); ok {
			name, _, _ = strings.Cut(name, "\t")
			name = strings.TrimSuffix(strings.TrimPrefix(name, "b/"), " modified")
			if files++; files > 1 || !meant(path, name) && !strings.HasSuffix(keyOf(path), "/"+name) {
				return nil
			}
		}
		m := hunkHead.FindStringSubmatch(lines[at])
		if m == nil {
			continue
		}
		count := func(text string) int {
			if n, err := strconv.Atoi(text); err == nil {
				return n
			}
			return 1
		}
		h, old, put := hunk{from: count(m[2])}, count(m[1]), count(m[3])
		if put == 0 {
			h.from++
		}
		for h.from = max(h.from, 1); len(h.old) < old || len(h.new) < put; {
			if at++; at == len(lines) {
				return nil
			}
			switch line := strings.TrimSuffix(lines[at], "\r"); {
			case line == "", line[0] == ' ':
				text := strings.TrimPrefix(line, " ")
				h.old, h.new = append(h.old, text), append(h.new, text)
			case line[0] == '-':
				h.old = append(h.old, line[1:])
			case line[0] == '+':
				h.new = append(h.new, line[1:])
			case line[0] != '\\':
				return nil
			}
		}
		if len(h.old) != old || len(h.new) != put || len(out) > 0 && h.from < out[len(out)-1].from+len(out[len(out)-1].new) {
			return nil
		}
		out = append(out, h)
	}
	return out
}

// rewrite applies the hunks by which a result shows what a call changed; false if there are none. Where they are not of
// the lines that are known, these are not the file's any more.
func (v *Views) rewrite(f *file, all []hunk) bool {
	if len(all) == 0 {
		return false
	}
	f.touched, f.edited = v.now(), v.now()
	for _, h := range all {
		if !f.agrees(region{from: h.from, lines: v.fresh(h.old, false)}) {
			v.doubt(f)
		}
		v.work += f.bytes()
		if v.laid += f.bytes(); v.laid > mostLaid {
			v.miss(f)
			break
		}
		v.overwrite(f, h.from, len(h.old), h.new)
	}
	return true
}

// bytes are those of the lines that are known.
func (f *file) bytes() int {
	n := 0
	for i := range f.regions {
		n += f.regions[i].bytes
	}
	return n
}

// shownAfter are the parts of a file that Gemini CLI shows after an edit, which it may have made where the text was
// much the same. The last line may have words of its own after it.
func shownAfter(body string) (parts [][]string) {
	_, text, ok := strings.Cut(body[:min(len(body), wholeBytes)], updatedCode)
	if !ok {
		return nil
	}
	var part []string
	for line := range strings.SplitSeq(text+"\n...", "\n") {
		if line != "..." {
			part = append(part, line)
			continue
		}
		if len(part) > 0 {
			parts = append(parts, part)
		}
		part = nil
	}
	if last := len(parts) - 1; last >= 0 && !strings.HasSuffix(text, "\n...") {
		parts[last] = parts[last][:len(parts[last])-1]
	}
	return parts
}
