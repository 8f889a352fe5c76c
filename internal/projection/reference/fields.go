package reference

import "strings"

// EachField calls yield for the values of members that have an id, a path, a symbol or a reference, in JSON anywhere
// in text. The values are strings without spaces and escapes, or the strings of a list of these.
func EachField(text string, yield func(string)) {
	for i := 0; ; {
		open := strings.IndexByte(text[i:], '"')
		if open < 0 {
			return
		}
		start := i + open + 1
		end := start
		for end < len(text) && fieldNameByte(text[end]) {
			end++
		}
		if end >= len(text) || text[end] != '"' || end == start {
			i = start
			continue
		}
		i = end + 1
		at := skipSpace(text, i)
		if at >= len(text) || text[at] != ':' {
			i = end // the quote may open another string
			continue
		}
		if holdsName(text[start:end]) {
			i = eachValue(text, skipSpace(text, at+1), yield)
		}
	}
}

// eachValue yields the string or the strings of the list at i and returns where it
// stopped.
func eachValue(text string, i int, yield func(string)) int {
	list := i < len(text) && text[i] == '['
	if list {
		i = skipSpace(text, i+1)
	}
	for i < len(text) && text[i] == '"' {
		end := i + 1
		for end < len(text) && text[end] > ' ' && text[end] != '"' && text[end] != '\\' {
			end++
		}
		if end >= len(text) || text[end] != '"' {
			return i + 1
		}
		if value := strings.TrimPrefix(text[i+1:end], "./"); len(value) >= 3 && len(value) <= longestName && !structural[value] {
			yield(value)
		}
		i = end + 1
		if !list {
			return i
		}
		if i = skipSpace(text, i); i >= len(text) || text[i] != ',' {
			return i
		}
		i = skipSpace(text, i+1)
	}
	return i
}

func skipSpace(text string, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}

func fieldNameByte(b byte) bool {
	return nameClass(b)&(lowerByte|upperByte|digitByte) != 0 || b == '_' || b == '-'
}

// holdsName reports whether a member with this name has a name as its value: id, orderId, order_ids, file-path,
// symbol, ref and similar ones, but not valid.
func holdsName(field string) bool {
	field = strings.TrimSuffix(field, "s")
	for _, end := range []string{"id", "path", "symbol", "ref", "file", "sha"} {
		n := len(field) - len(end)
		if n < 0 || !strings.EqualFold(field[n:], end) {
			continue
		}
		if n == 0 || field[n-1] == '_' || field[n-1] == '-' || nameClass(field[n])&upperByte != 0 && nameClass(field[n-1])&lowerByte != 0 {
			return true
		}
	}
	return false
}

// EachLine yields the lines of a text that may be quoted: trimmed, and more than a few words long.
func EachLine(text string, yield func(string)) {
	for line := range strings.SplitSeq(text, "\n") {
		line = trimLine(line)
		if quotable(line) {
			yield(line)
		}
	}
}

// eachQuotation yields the texts between quotation marks or backquotes in a line.
func eachQuotation(text string, yield func(string)) {
	for line := range strings.SplitSeq(text, "\n") {
		for _, mark := range []string{"`", `"`, "'"} {
			parts := strings.Split(line, mark)
			for i := 1; i < len(parts)-1; i++ {
				if part := trimLine(parts[i]); quotable(part) {
					yield(part)
				}
			}
		}
	}
}

// trimLine removes indentation, the mark of a quotation, and the number that some tools put before the lines of a
// file.
func trimLine(line string) string {
	const longest = 400 // bytes; of longer lines only the beginning is compared
	line = strings.Trim(line[:min(len(line), longest)], " \t\r")
	line = strings.TrimLeft(strings.TrimPrefix(line, ">"), " \t")
	rest := strings.TrimLeft(line, "0123456789")
	if after, ok := strings.CutPrefix(rest, "→"); ok && len(rest) < len(line) {
		return strings.TrimLeft(after, " \t")
	}
	if after, ok := strings.CutPrefix(rest, "\t"); ok && len(rest) < len(line) {
		return strings.TrimLeft(after, " \t")
	}
	return line
}

// quotable reports whether a line has words and is so long that it does not occur twice by chance.
func quotable(line string) bool {
	const shortest = 24 // bytes
	return len(line) >= shortest && strings.IndexFunc(line, isLetter) >= 0 && strings.ContainsAny(line, " \t")
}

func isLetter(r rune) bool {
	return r > 0x7f || nameClass(byte(r))&(lowerByte|upperByte) != 0
}
