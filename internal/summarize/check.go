package summarize

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/summarize/prompt"
)

// The rules for echoes. Only the words of texts are compared, so that an echo with other line breaks, marks or
// quotation is found, too.
const (
	// run is how many consecutive words must be equal for a passage to count as copied.
	run = 8
	// leastWords is the shortest text to which the rules apply: a shorter one may consist of paths and names.
	leastWords = 24
	// copied is the greatest share of a text, in percent, that may be copied from the span. Quoted errors and
	// requests are welcome; longer copies are not.
	copied = 60
	// recited is the greatest share, in percent, that may be copied from the instructions.
	recited = 25
)

// checkText returns a *RejectedError unless a text may replace a span.
func checkText(text string, limit uint64, count func(string) uint64) error {
	switch {
	case !utf8.ValidString(text):
		return &RejectedError{"it is not valid UTF-8"}
	case strings.ContainsRune(text, 0):
		return &RejectedError{"it contains NUL"}
	case strings.TrimSpace(text) == "":
		return &RejectedError{"it is empty"}
	}
	if n := count(text); n > limit {
		return &RejectedError{fmt.Sprintf("it has %d tokens; the limit is %d", n, limit)}
	}
	return nil
}

// checkEcho rejects a text in which a model repeats its input instead of a summary. The older summary is not checked:
// its sentences may still hold word for word.
func checkEcho(text, system string, span []string) error {
	words := wordsOf(text)
	if len(words) < leastWords {
		return nil
	}
	if share := sharedPercent(words, span); share > copied {
		return &RejectedError{fmt.Sprintf("%d%% of it are the span word for word", share)}
	}
	if share := sharedPercent(words, []string{system, prompt.Frame()}); share > recited {
		return &RejectedError{fmt.Sprintf("%d%% of it are the instructions word for word", share)}
	}
	return nil
}

// sharedPercent returns the share of words that belong to a run of words which one of the texts has, too.
func sharedPercent(words, texts []string) int {
	seed := maphash.MakeSeed() // hashes do not leave this call
	places := map[uint64]bool{}
	runs := func(words []string, yield func(at int, key uint64)) {
		for at := 0; at+run <= len(words); at++ {
			yield(at, maphash.Comparable(seed, [run]string(words[at:at+run])))
		}
	}
	for _, t := range texts {
		runs(wordsOf(t), func(_ int, key uint64) { places[key] = true })
	}
	same := make([]bool, len(words))
	runs(words, func(at int, key uint64) {
		if places[key] {
			for i := at; i < at+run; i++ {
				same[i] = true
			}
		}
	})
	n := 0
	for _, s := range same {
		if s {
			n++
		}
	}
	return 100 * n / len(words)
}

// wordsOf returns the runs of letters and digits, in lower case.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i := range words {
		words[i] = strings.ToLower(words[i])
	}
	return slices.Clip(words)
}
