package fileview

import "strings"

// blocks are the operations of the SEARCH and REPLACE blocks in a text, as Cline and Roo Code
// write them, on one file.
func blocks(path, text string) []Operation {
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
