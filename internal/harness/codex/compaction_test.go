package codex

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// TestKeptWithoutList: a compaction without a list of kept messages keeps the newest user messages among
// those in the prompt.
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

// TestPartsStayAroundACompaction: the parts of a reply are joined in the file, but none is moved across a
// compaction.
func TestPartsStayAroundACompaction(t *testing.T) {
	say := func(id, group string) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{
			Role: eventlog.RoleAssistant, GroupID: group, Blocks: []eventlog.Block{eventlog.Text{Text: "says " + id}},
		}}
	}
	ask := eventlog.Event{ID: "u", Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: "says u"}}}}
	sum := eventlog.Event{ID: "c", Body: &eventlog.Compaction{Summary: "says c"}}
	var file bytes.Buffer
	if _, err := write(&file, transcript.Transcript{Sessions: []transcript.Session{{
		Events: []eventlog.Event{say("a", "g"), ask, say("b", "g"), sum, say("d", "g")},
	}}}, transcript.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, said := range []string{"says a", "says b", "says u", "says c", "says d"} {
		at := strings.Index(file.String(), said)
		if at <= last {
			t.Errorf("%q is not where it belongs:\n%s", said, file.String())
		}
		last = at
	}
}
