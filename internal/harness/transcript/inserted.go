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

// Inserted reports whether a text consists only of elements with these names, such as <name>…</name>. A text
// with anything else before, between or after them may be a human's.
func Inserted(text string, names map[string]bool) bool {
	_, ok := Elements(text, names)
	return ok
}

// Elements returns the names of the elements in an inserted text; ok is false where Inserted is.
func Elements(text string, names map[string]bool) (found []string, ok bool) {
	text = strings.TrimSpace(text)
	for text != "" {
		name, rest, ok := cutElement(text, names)
		if !ok {
			return nil, false
		}
		found = append(found, name)
		text = strings.TrimSpace(rest)
	}
	return found, len(found) > 0
}

// Output reports whether a text begins with one of these elements and ends with one. What is between is what some
// program or model said, so it may itself hold the ends of elements, and words after them.
func Output(text string, names map[string]bool) bool {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "<") || !strings.HasSuffix(text, ">") {
		return false
	}
	first, _, _ := strings.Cut(text[1:], ">")
	first, _, _ = strings.Cut(first, " ")
	last := strings.TrimSuffix(text[strings.LastIndexByte(text, '<')+1:], ">")
	end, ok := strings.CutPrefix(last, "/")
	return ok && names[first] && names[end]
}

// cutElement splits off the element with which the text begins. Attributes, or a second word, may follow the
// name in the opening tag; the second word may be repeated in the closing tag.
func cutElement(text string, names map[string]bool) (name, rest string, ok bool) {
	if text[0] != '<' {
		return "", "", false
	}
	open, rest, ok := strings.Cut(text[1:], ">")
	if !ok {
		return "", "", false
	}
	name, _, _ = strings.Cut(open, " ")
	name = strings.TrimSuffix(name, "/")
	switch {
	case !names[name]:
		return "", "", false
	case strings.HasSuffix(open, "/"):
		return name, rest, true
	}
	if _, after, closed := strings.Cut(rest, "</"+open+">"); closed {
		return name, after, true
	}
	_, rest, ok = strings.Cut(rest, "</"+name+">")
	return name, rest, ok
}
