package main

import (
	"fmt"
)

// Comparison is what became of holding a request to a view.
type Comparison struct {
	// Same is how many turns are equal, and Own how many the CLI added.
	Same, Own int
	// Difference is the first; empty if there is none.
	Difference string
}

// Compare holds the turns of a request to those of the view and the prompt behind them.
func Compare(h Harness, view, request []Turn, prompt string) Comparison {
	var c Comparison
	var want []Turn
	for _, t := range view {
		if t, ok := h.Sends(t); ok {
			want = append(want, t)
		}
	}
	want = append(want, Turn{Role: "user", Kind: Text, Body: prompt})
	w := 0
	for i, got := range request {
		switch {
		case w < len(want) && want[w] == got:
			c.Same++
			w++
		case h.Own(got):
			c.Own++
		case w == len(want):
			c.Difference = fmt.Sprintf("turn %d of the request is behind the prompt: %s", i+1, got)
			return c
		default:
			c.Difference = fmt.Sprintf("turn %d of %d should be\n    %s\n  and is\n    %s%s",
				w+1, len(want), want[w], got, firstDifference(want[w].Body, got.Body))
			return c
		}
	}
	if w < len(want) {
		c.Difference = fmt.Sprintf("turn %d of %d is not in the request: %s", w+1, len(want), want[w])
	}
	return c
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
