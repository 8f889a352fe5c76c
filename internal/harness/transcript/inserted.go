package transcript

import "strings"

// Tags makes the set of names that Inserted takes.
func Tags(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// Inserted reports whether a text is nothing but elements with the names, such as
// <name>…</name>, one after another. A text that begins with such an element and goes on, or
// holds one, may be a human's.
func Inserted(text string, names map[string]bool) bool {
	text = strings.TrimSpace(text)
	if text == "" {
		return false
	}
	for text != "" {
		rest, ok := afterElement(text, names)
		if !ok {
			return false
		}
		text = strings.TrimSpace(rest)
	}
	return true
}

// afterElement cuts the element off that the text begins with.
func afterElement(text string, names map[string]bool) (rest string, ok bool) {
	if text[0] != '<' {
		return "", false
	}
	open, rest, ok := strings.Cut(text[1:], ">")
	if !ok {
		return "", false
	}
	name, _, _ := strings.Cut(open, " ")
	name, empty := strings.CutSuffix(name, "/")
	if !names[strings.TrimSpace(name)] {
		return "", false
	}
	if empty || strings.HasSuffix(open, "/") {
		return rest, true
	}
	_, rest, ok = strings.Cut(rest, "</"+strings.TrimSpace(name)+">")
	return rest, ok
}
