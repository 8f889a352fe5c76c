package fileop

import "strings"

// Patches are the operations of all patches in a text: those that begin *** Begin Patch, and
// those of diff -u and git diff.
func Patches(text string) []Operation {
	switch {
	case strings.Contains(text, "*** Begin Patch"):
		return parsePatch(text)
	case strings.Contains(text, "\n@@ -") && strings.Contains(text, "+++ "):
		return parseDiff(text)
	default:
		return nil
	}
}

// hunk gathers the lines of one place that a patch changes.
type hunk struct {
	old, new strings.Builder
	anchor   string
	numbered bool // its head says at which line it is
}

// add takes in a line of the patch and reports whether it belongs to a hunk.
func (h *hunk) add(line string) bool {
	if line == "" { // an empty line of context whose blank was lost
		line = " "
	}
	switch line[0] {
	case ' ':
		h.old.WriteString(line[1:] + "\n")
		h.new.WriteString(line[1:] + "\n")
	case '-':
		h.old.WriteString(line[1:] + "\n")
	case '+':
		h.new.WriteString(line[1:] + "\n")
	default:
		return false
	}
	return true
}

// end appends the operation of the hunk, if it has any lines, and empties it.
func (h *hunk) end(all []Operation, kind Kind, path string) []Operation {
	op := Operation{Kind: kind, Path: path, Old: h.old.String(), New: h.new.String(), First: kind == Replace && !h.numbered, Anchor: h.anchor}
	*h = hunk{}
	if path == "" || op.Old == "" && op.New == "" {
		return all
	}
	return append(all, op)
}

func parsePatch(text string) []Operation {
	var out []Operation
	var h hunk
	path, kind, inside := "", Replace, false
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		header, rest, _ := strings.Cut(line, ": ")
		rest = strings.TrimSpace(rest)
		switch {
		case header == "*** Update File", header == "*** Add File":
			out = h.end(out, kind, path)
			path, kind, inside = rest, Replace, true
			if header == "*** Add File" {
				kind = Write
			}
		case header == "*** Delete File":
			out = h.end(out, kind, path)
			path, inside = "", false
			if rest != "" {
				out = append(out, Operation{Kind: Remove, Path: rest})
			}
		case header == "*** Move to":
			if path != "" && rest != "" {
				out = append(out, Operation{Kind: Move, Path: path, To: rest})
			}
			path = rest
		case line == "*** End Patch":
			out = h.end(out, kind, path)
			path, inside = "", false
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "*** "):
			out = h.end(out, kind, path)
			if rest, ok := strings.CutPrefix(line, "@@ "); ok {
				h.anchor = strings.TrimSpace(strings.TrimSuffix(rest, "@@"))
			}
		case inside:
			h.add(line)
		}
	}
	return h.end(out, kind, path)
}

func parseDiff(text string) []Operation {
	const nowhere = "/dev/null"
	var out []Operation
	var h hunk
	from, path, kind, inside := "", "", Replace, false
	end := func() {
		out = h.end(out, kind, path)
		inside = false
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "diff "):
			end()
			from, path, kind = "", "", Replace
		case strings.HasPrefix(line, "--- "):
			end()
			from, path, kind = diffName(line), "", Replace
		case !inside && strings.HasPrefix(line, "rename from "):
			from = diffName(line[len("rename "):])
		case !inside && strings.HasPrefix(line, "rename to "):
			if to := diffName(line[len("rename "):]); from != "" && to != "" {
				out = append(out, Operation{Kind: Move, Path: from, To: to})
			}
		case strings.HasPrefix(line, "+++ "):
			switch path = diffName(line); {
			case path == nowhere && from != "" && from != nowhere:
				out = append(out, Operation{Kind: Remove, Path: from})
				path = ""
			case path == nowhere:
				path = ""
			case from == nowhere:
				kind = Write
			}
		case strings.HasPrefix(line, "@@ "):
			end()
			inside, h.numbered = true, true
		case inside && !h.add(line):
			inside = false
		}
	}
	end()
	return out
}

// diffName is the file that a header of a diff names after its first word.
func diffName(line string) string {
	_, name, _ := strings.Cut(line, " ")
	name, _, _ = strings.Cut(name, "\t")
	name = strings.TrimSpace(name)
	if rest, ok := strings.CutPrefix(name, "a/"); ok {
		return rest
	}
	return strings.TrimPrefix(name, "b/")
}

// searchReplace are the operations of the SEARCH and REPLACE blocks in a text, as Cline and Roo Code
// write them, on one file.
func searchReplace(path, text string) []Operation {
	const (
		outside = iota
		searched
		replaced
	)
	var out []Operation
	var h hunk
	at := outside
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		switch {
		case line == "------- SEARCH", line == "<<<<<<< SEARCH":
			out = h.end(out, Replace, path)
			at = searched
		case line == "=======" && at == searched:
			at = replaced
		case at == replaced && (line == "+++++++ REPLACE" || line == ">>>>>>> REPLACE"):
			out = h.end(out, Replace, path)
			at = outside
		case at == searched && h.old.Len() == 0 && (strings.HasPrefix(line, ":start_line:") || strings.HasPrefix(line, ":end_line:") || line == "-------"):
			// where the place is
		case at == searched:
			h.old.WriteString(line + "\n")
		case at == replaced:
			h.new.WriteString(line + "\n")
		}
	}
	return h.end(out, Replace, path)
}
