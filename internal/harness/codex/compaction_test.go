package codex

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
)

// TestKeptWithoutList: where a compaction has no list of what stays, the user's newest
// messages do, of what was in the prompt until then.
func TestKeptWithoutList(t *testing.T) {
	asks := func(text string) string {
		return fmt.Sprintf(`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, text)
	}
	const (
		answers = `{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes."}]}}`
		search  = `{"type":"response_item","payload":{"type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}}`
		bare    = `{"type":"compacted","payload":{"message":"So far."}}`
	)
	listed := fmt.Sprintf(`{"type":"compacted","payload":{"message":"So far.","replacement_history":[%s]}}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"two"}]}`)
	long := strings.Repeat("x", keptBytes/2)
	for name, tc := range map[string]struct {
		records []string
		want    []string // what the compactions keep
	}{
		"the user's":        {[]string{asks("one"), answers, asks("two"), bare}, []string{"[line-1 line-3]"}},
		"not the harness's": {[]string{asks("<environment_context>x</environment_context>"), asks("one"), bare}, []string{"[line-2]"}},
		"again":             {[]string{asks("one"), bare, asks("two"), bare}, []string{"[line-1]", "[line-1 line-3]"}},
		"behind a list":     {[]string{asks("one"), asks("two"), listed, asks("three"), bare}, []string{"[line-2]", "[line-2 line-4]"}},
		"what the provider ran": {
			[]string{asks("one"), search, strings.Replace(bare, `}}`, `,"replacement_history":[{"type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}]}}`, 1)},
			[]string{"[line-2]"},
		},
		"an empty list":          {[]string{asks("one"), strings.Replace(bare, `}}`, `,"replacement_history":[]}}`, 1)}, []string{"[]"}},
		"no more than a measure": {[]string{asks("one"), asks("two" + long), asks("three" + long), bare}, []string{"[line-2 line-3]"}},
	} {
		read, err := read(strings.NewReader(strings.Join(tc.records, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range read.Sessions[0].Events {
			if c, ok := e.Body.(*eventlog.Compaction); ok {
				got = append(got, fmt.Sprint(c.KeptEventIDs))
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
