package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Comparison is what became of holding a request to a view.
type Comparison struct {
	// Same is how many turns are equal.
	Same int
	// Own is how many turns the CLI added, by what they are.
	Own map[string]int
	// Difference is the first; empty if there is none.
	Difference string
}

// Compare compares the turns of a request with those of the view and the prompt after them.
func Compare(h Harness, view, request []Turn, prompt string) Comparison {
	c := Comparison{Own: map[string]int{}}
	var want []Turn
	for _, t := range view {
		if t, ok := h.Sends(t); ok {
			t.Foreign = false
			want = append(want, t)
		}
	}
	want = append(want, Turn{Role: "user", Kind: Text, Body: prompt})
	want, request = besideCalls(want), besideCalls(request)
	ids := idMap{}
	taken := make([]bool, len(request))
	w := 0
	for i := 0; i < len(request); i++ {
		got := request[i]
		switch {
		case taken[i]:
		case w < len(want) && ids.equal(want[w], got):
			c.Same++
			w++
			taken[i] = true
		case w < len(want) && movable(h, want[w]) && moved(ids, want[w], request, taken):
			c.Same++
			w++
			i-- // against the next
		case h.Own(got) != "":
		case w == len(want):
			c.Difference = fmt.Sprintf("turn %d of the request is after the prompt: %s", i+1, got)
			return c
		default:
			c.Difference = fmt.Sprintf("turn %d of %d should be\n    %s\n  and is\n    %s%s",
				w+1, len(want), want[w], got, firstDifference(want[w].Body, got.Body))
			return c
		}
	}
	for i, t := range taken {
		if why := h.Own(request[i]); !t && why != "" {
			c.Own[why]++
		}
	}
	if w < len(want) {
		c.Difference = fmt.Sprintf("turn %d of %d is not in the request: %s", w+1, len(want), want[w])
	}
	return c
}

// movable reports whether a turn of the view may have been written by the CLI itself.
func movable(h Harness, t Turn) bool {
	return h.Own(t) != "" || t.Kind == Text && (t.Role == "system" || t.Role == "user" && strings.HasPrefix(t.Body, reminderTag))
}

// moved finds what the CLI once wrote of itself at another place: where its own messages
// are between the others is its own affair too.
func moved(ids idMap, want Turn, request []Turn, taken []bool) bool {
	for i, got := range request {
		if !taken[i] && ids.equal(want, got) {
			taken[i] = true
			return true
		}
	}
	return false
}

// idMap holds what the CLI calls the calls whose ids no provider takes.
type idMap map[string]string

var anyProviders = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (ids idMap) equal(want, got Turn) bool {
	if got.Seam && got.Body == want.Body+"\n" {
		got.Body = want.Body
	}
	got.Seam = false
	if want == got || want.ID == "" || anyProviders.MatchString(want.ID) {
		return want == got
	}
	id, known := ids[want.ID]
	if !known && want.Kind == Call && !slices.Contains(slices.Collect(maps.Values(ids)), got.ID) {
		id = got.ID
	}
	original := want.ID
	want.ID = id
	if want != got || !anyProviders.MatchString(got.ID) {
		return false
	}
	ids[original] = id
	return true
}

// besideCalls puts each result directly after its call, where nothing is between
// them but what the same reply says and other results: the order of parallel results after
// their calls does not matter.
func besideCalls(turns []Turn) []Turn {
	var out []Turn
	moved := make([]bool, len(turns))
	for i, t := range turns {
		if moved[i] {
			continue
		}
		out = append(out, t)
		if t.Kind != Call {
			continue
		}
		for j := i + 1; j < len(turns) && (turns[j].Kind == Result || turns[j].Role == "assistant"); j++ {
			if turns[j].Kind == Result && turns[j].ID == t.ID && !moved[j] {
				out = append(out, turns[j])
				moved[j] = true
				break
			}
		}
	}
	return out
}

// firstDifference shows where two long texts part.
func firstDifference(a, b string) string {
	if a == b {
		return ""
	}
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	if at < 60 {
		return ""
	}
	return fmt.Sprintf("\n  from byte %d on: %s and %s", at, shorten(a[at:], 120), shorten(b[at:], 120))
}

// ownTexts say of texts that a CLI writes of itself what they are, by how their paragraphs
// begin. A text that is not listed is compared, so that a new version's are noticed.
type ownTexts []struct{ begins, what string }

// explain is what the paragraphs of a text are, or "" if one of them is not listed.
func (own ownTexts) explain(text string) string {
	var all []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		what := own.of(paragraph)
		if what == "" {
			return ""
		}
		if !slices.Contains(all, what) {
			all = append(all, what)
		}
	}
	return strings.Join(all, ", ")
}

func (own ownTexts) of(paragraph string) string {
	for _, one := range own {
		if strings.HasPrefix(paragraph, one.begins) {
			return one.what
		}
	}
	return ""
}
