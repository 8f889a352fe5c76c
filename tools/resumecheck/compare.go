package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Comparison is the result of comparing a request with a view.
type Comparison struct {
	// Same is the number of equal turns.
	Same int
	// Own counts the turns that the CLI added, by what they are.
	Own map[string]int
	// Difference is the first difference; empty if there is none.
	Difference string
}

// Compare compares the turns of a request with those of a view followed by the prompt.
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
			i-- // compare this turn of the request with the next expected one
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

// movable reports whether a turn of the view may come from the CLI itself.
func movable(h Harness, t Turn) bool {
	return h.Own(t) != "" || t.Kind == Text && (t.Role == "system" || t.Role == "user" && strings.HasPrefix(t.Body, reminderTag))
}

// moved finds a turn that the CLI had added itself at another place in the request: where it puts its own
// messages does not matter.
func moved(ids idMap, want Turn, request []Turn, taken []bool) bool {
	for i, got := range request {
		if !taken[i] && ids.equal(want, got) {
			taken[i] = true
			return true
		}
	}
	return false
}

// idMap maps ids of calls that providers would refuse to the ids that the CLI sends instead.
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

// besideCalls moves each result directly after its call, if only other parts of the same reply and other
// results are between them. So the order of the results of parallel calls does not matter.
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

// firstDifference shows where two texts begin to differ.
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

// ownTexts describe the texts that a CLI adds, by how their paragraphs begin. Other texts are compared, so
// that new texts of a later version are noticed.
type ownTexts []struct{ begins, what string }

// explain describes the paragraphs of a text; "" if one of them is not listed.
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
