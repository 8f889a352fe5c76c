package render_test

import (
	"fmt"
	"slices"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
)

// oneMessage is a model's message of many events, one for each list of blocks.
func oneMessage(events ...[]eventlog.Block) render.Message {
	m := render.Message{Role: eventlog.RoleAssistant, Model: "gpt-5", Origin: render.Verbatim, Tokens: 10}
	for i, blocks := range events {
		seq := eventlog.Seq(i + 1)
		m.Seqs = append(m.Seqs, seq)
		for b := range blocks {
			m.Blocks = append(m.Blocks, blocks[b])
			m.Places = append(m.Places, eventlog.Place{Seq: seq, Block: b})
		}
	}
	return m
}

// TestEachItemHasItsOwnEvents: what a format makes of one message says of each part which events it
// came from, and of every event of the message one part does.
func TestEachItemHasItsOwnEvents(t *testing.T) {
	call := func(i int) []eventlog.Block { return []eventlog.Block{makes(fmt.Sprint("c", i), "read", "{}")} }
	thought := []eventlog.Block{eventlog.Thinking{Text: "hm"}}
	var calls [][]eventlog.Block
	for i := range 300 {
		calls = append(calls, call(i))
	}
	said := []eventlog.Block{text("so")}
	for name, c := range map[string]struct {
		message         render.Message
		responses, chat string
	}{
		"calls":                     {oneMessage(call(1), call(2)), "[1] [2]", "[1 2]"},
		"two items of an event":     {oneMessage(slices.Concat(said, call(1)), call(2)), "[1] [1] [2]", "[1 2]"},
		"nothing to show first":     {oneMessage(thought, call(1), call(2)), "[1 2] [3]", "[1 2 3]"},
		"nothing to show last":      {oneMessage(call(1), call(2), thought), "[1] [2 3]", "[1 2 3]"},
		"events without blocks":     {oneMessage(nil, call(1), nil, call(2), nil), "[1 2] [3 4 5]", "[1 2 3 4 5]"},
		"nothing to show at all":    {oneMessage(thought, thought), "", ""},
		"more calls than a message": {oneMessage(slices.Concat(calls[:130], [][]eventlog.Block{said})...), "", fmt.Sprint(upTo(1, 128, 131), " ", upTo(129, 130))},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sourcesOf(formatOf(t, "openai_responses"), c.message); got != c.responses && c.responses != "" {
				t.Errorf("the items of Responses are of %s instead of %s", got, c.responses)
			}
			if got := sourcesOf(formatOf(t, "openai_chat"), c.message); got != c.chat {
				t.Errorf("the messages of Chat Completions are of %s instead of %s", got, c.chat)
			}
		})
	}
	for _, f := range render.Formats() {
		m := oneMessage(calls...)
		listed, blocks := 0, 0
		seen := map[eventlog.Seq]bool{}
		for _, got := range f.Fragments(m) {
			listed, blocks = listed+len(got.Seqs), blocks+len(got.Blocks)
			for _, seq := range got.Seqs {
				seen[seq] = true
			}
		}
		if listed != len(m.Seqs) || len(seen) != len(m.Seqs) || blocks != len(m.Blocks) {
			t.Errorf("%q: %d events are listed as %d, of which %d differ, and %d blocks as %d", f.Name, len(m.Seqs), listed, len(seen), len(m.Blocks), blocks)
		}
	}
}

// upTo lists the events of a run, and more.
func upTo(first, last eventlog.Seq, more ...eventlog.Seq) []eventlog.Seq {
	var out []eventlog.Seq
	for seq := first; seq <= last; seq++ {
		out = append(out, seq)
	}
	return append(out, more...)
}

func formatOf(t *testing.T, name string) *render.Format {
	f, ok := render.FormatNamed(name)
	if !ok {
		t.Fatalf("no format %s", name)
	}
	return f
}

// sourcesOf are the events of each part that a message becomes.
func sourcesOf(f *render.Format, m render.Message) string {
	out := ""
	for i, part := range f.Join(f.Fragments(m)) {
		if i > 0 {
			out += " "
		}
		out += fmt.Sprint(part.Seqs)
	}
	return out
}
