package fileview

import (
	"encoding/json"
	"iter"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// listed are the operations of a call that reads files of a list, one for each that the result names, with the text
// that it shows of each. There are none where it names a file twice: a text may name files, too.
func listed(ops []fileop.Operation, body string) (out []fileop.Operation, texts []string) {
	const most = 256 // files
	if len(ops) > most {
		return nil, nil
	}
	text := unwrap(body)
	found := sections(ops, text)
	if strings.HasPrefix(text, "[{") {
		found = answers(text)
	}
	once := map[string]bool{}
	for name, text := range found {
		i := slices.IndexFunc(ops, func(op fileop.Operation) bool { return meant(op.Path, name) })
		if i < 0 {
			continue
		}
		if once[keyOf(name)] {
			return nil, nil
		}
		once[keyOf(name)] = true
		op := ops[i]
		op.Path = name
		out, texts = append(out, op), append(texts, text)
	}
	return out, texts
}

// meant reports whether a path, or a pattern of paths, that a call gives is that of a file.
func meant(given, name string) bool {
	given, name = keyOf(given), keyOf(name)
	if at := strings.IndexAny(given, "*?[{"); at >= 0 {
		end := given[strings.LastIndexAny(given, "*?]}")+1:]
		if strings.ContainsRune(name, ' ') || !strings.ContainsAny(name, "./") {
			return false // a line of a text may match a pattern, too
		}
		return strings.HasSuffix(name, end) && (strings.HasPrefix(name, given[:at]) || strings.Contains(name, "/"+given[:at]))
	}
	given = path.Clean(given)
	return name == given || strings.HasSuffix(name, "/"+given) || strings.HasSuffix(given, "/"+name)
}

// header is how a tool writes the name of a file above its text, where it shows several.
type header struct {
	begin, end string   // of the line, around the name
	above      []string // what may be above the line, unless it is the first
	below      string   // what is below it, before the text
	last       *regexp.Regexp
}

// headers are those of tools; last matches what comes after the text.
var headers = []header{
	{"--- ", " ---", []string{""}, "\n", regexp.MustCompile(`\n--- (?:End of content|Newly Discovered Project Context) ---\n?(?s:.*)$`)}, // Gemini CLI, Qwen Code
	{"File: ", "", []string{""}, "", regexp.MustCompile(`\n---\n*$`)},                                                                    // Roo Code
	{"<file><path>", "</path>", []string{"<files>", "</file>"}, "", regexp.MustCompile(`\n</content>(?s:.*)$`)},                          // before version 3.37
	{"", ":", []string{"---"}, "", regexp.MustCompile(`\n---\n*$`)},                                                                      // the MCP server of files
}

// find is the next line of a text from an offset on that names one of the files: where the line begins and ends, and
// the name in it. It is false if there is none before so many lines that could be one.
func (h *header) find(ops []fileop.Operation, text string, from int) (begin, end int, name string, ok bool) {
	const most = 1024
	tries := 0
	above := ""
	if from > 0 {
		above = text[strings.LastIndexByte(text[:from-1], '\n')+1 : from-1]
	}
	for begin = from; begin < len(text); begin = end + 1 {
		line, _, _ := strings.Cut(text[begin:], "\n")
		end = begin + len(line)
		after, ok := strings.CutPrefix(line, h.begin)
		name, ok2 := strings.CutSuffix(after, h.end)
		if ok && ok2 && (begin == 0 || slices.Contains(h.above, above)) && (h.below == "" || strings.HasPrefix(text[end:], "\n\n")) {
			if slices.ContainsFunc(ops, func(op fileop.Operation) bool { return meant(op.Path, name) }) {
				return begin, end, name, true
			}
			if tries++; tries == most {
				break
			}
		}
		above = line
	}
	return 0, 0, "", false
}

// sections yields the files that a result names, with the text below each.
func sections(ops []fileop.Operation, text string) iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		for i := range headers {
			h := &headers[i]
			_, from, name, ok := h.find(ops, text, 0)
			if !ok {
				continue
			}
			for ok {
				begin, end, next, more := h.find(ops, text, from)
				if !more {
					begin = len(text)
				}
				part := strings.TrimPrefix(strings.TrimPrefix(text[from:begin], "\n"), h.below)
				if at := h.last.FindStringIndex(part); at != nil {
					part = part[:at[0]]
				}
				if !yield(name, strings.TrimRight(part, "\n")+"\n") {
					return
				}
				from, name, ok = end, next, more
			}
			return
		}
	}
}

// answers are the files in a list of answers, as Cline's tool has it, with the text of each.
func answers(text string) iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		var all []struct {
			Query, Result string
			Success       bool
		}
		if json.Unmarshal([]byte(text), &all) != nil {
			return
		}
		for _, answer := range all {
			name := ranged.ReplaceAllString(answer.Query, "")
			if answer.Success && name != "" && !yield(name, answer.Result) {
				return
			}
		}
	}
}

// ranged is what such an answer says of the lines that were asked for.
var ranged = regexp.MustCompile(`:\d+-(?:\d+|EOF)$`)
