package transcript

import (
	"regexp"
	"strings"
)

// Tags returns a set of names for Inserted.
func Tags(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// Inserted reports whether a text consists only of elements with these names, such as <name>…</name>. A text with
// anything else before, between or after them may be a human's. outputs are elements with texts of files, programs
// and models, which may contain closing tags. For these it is enough that the text begins and ends with such
// elements, since no words of a human are between them.
func Inserted(text string, names, outputs map[string]bool) bool {
	_, ok := Elements(text, names, outputs)
	return ok
}

// Elements returns the names of the elements in an inserted text, or only the first name if an output contains its
// own closing tag. ok is the result of Inserted.
func Elements(text string, names, outputs map[string]bool) (found []string, ok bool) {
	text = strings.TrimSpace(text)
	room := mostSearches * len(text)
	for rest := text; rest != ""; rest = strings.TrimSpace(rest) {
		name, after, ok := cutElement(rest, names, &room)
		if !ok {
			return output(text, outputs)
		}
		found, rest = append(found, name), after
	}
	return found, len(found) > 0
}

// output returns the name of the element with which a text begins, if the text also ends with one of these.
func output(text string, names map[string]bool) (found []string, ok bool) {
	if !strings.HasPrefix(text, "<") || !strings.HasSuffix(text, ">") {
		return nil, false
	}
	first, _, _ := strings.Cut(text[1:], ">")
	first, _, _ = strings.Cut(first, " ")
	last, _, _ := strings.Cut(text[strings.LastIndexByte(text, '<')+1:len(text)-1], " ")
	end, ends := strings.CutPrefix(last, "/")
	if !ends || !names[first] || !names[end] {
		return nil, false
	}
	return []string{first}, true
}

// mostSearches is how many times as many bytes as a text has are searched in vain for closing tags that repeat the
// second word of opening tags. A text that would take more is not taken for a harness's.
const mostSearches = 64

// cutElement splits off the element with which the text begins. Attributes, or a second word, may follow the
// name in the opening tag; the second word may be repeated in the closing tag. room is how many bytes may still be
// searched in vain for such a tag.
func cutElement(text string, names map[string]bool, room *int) (name, rest string, ok bool) {
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
	if open != name {
		if _, after, closed := strings.Cut(rest, "</"+open+">"); closed {
			return name, after, true
		}
		if *room -= len(rest); *room < 0 {
			return "", "", false
		}
	}
	_, rest, ok = strings.Cut(rest, "</"+name+">")
	return name, rest, ok
}

// closed matches a text that ends with a closing tag.
var closed = regexp.MustCompile(`</[\w-]+>$`)

// Asked splits a text that ends with the element in which a harness puts the user's request, after elements with
// texts of files and tools. Those texts may contain such an element, too; the last one is the harness's.
func Asked(text, name string) (before, asked string, ok bool) {
	text = strings.TrimSpace(text)
	open, end := "<"+name+">", "</"+name+">"
	if !strings.HasPrefix(text, "<") || !strings.HasSuffix(text, end) {
		return "", "", false
	}
	for at := len(text); !strings.HasPrefix(text, open); {
		if at = strings.LastIndex(text[:at], open); at < 0 {
			return "", "", false
		}
		if before = strings.TrimSpace(text[:at]); closed.MatchString(before[max(0, len(before)-100):]) {
			return before, text[at:], true
		}
	}
	return "", text, true
}
