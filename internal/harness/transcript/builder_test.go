package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

func text(s string) eventlog.Block { return eventlog.Text{Text: s} }

func call(id string) eventlog.Block {
	return eventlog.ToolCall{CallID: id, Name: "f", Arguments: "{}"}
}

func result(id string) eventlog.Block { return eventlog.ToolResult{CallID: id} }

func message(role eventlog.Role, blocks ...eventlog.Block) *eventlog.Message {
	return &eventlog.Message{Role: role, Blocks: blocks}
}

// said is an assistant message of a group.
func said(group string, blocks ...eventlog.Block) *eventlog.Message {
	return &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: group, Blocks: blocks}
}

func answered(blocks ...eventlog.Block) *eventlog.Message {
	return message(eventlog.RoleTool, blocks...)
}

// outline writes events in one line each: id, kind, and the ids of calls and results.
func outline(events []eventlog.Event) []string {
	var lines []string
	for _, e := range events {
		line := e.ID
		switch b := e.Body.(type) {
		case *eventlog.Message:
			line += " " + b.Role.String()
			for _, block := range b.Blocks {
				switch block := block.(type) {
				case eventlog.Text:
					line += " text:" + block.Text
				case eventlog.ToolCall:
					line += " call:" + block.CallID
				case eventlog.ToolResult:
					line += " result:" + block.CallID
				}
			}
		case *eventlog.Custom:
			line += " " + b.Type
		case *eventlog.Compaction:
			line += " compaction"
		}
		lines = append(lines, line)
	}
	return lines
}

func TestBuilder(t *testing.T) {
	tests := []struct {
		name     string
		entries  []transcript.Entry
		want     []string
		warnings []string
		dropped  int
		renamed  int
	}{
		{
			name: "an entry written twice is dropped, whatever its labels",
			entries: []transcript.Entry{
				{ID: "a", Body: said("g", text("x")), Labels: map[string]string{"n": "1"}},
				{ID: "a", Body: said("g", text("x")), Labels: map[string]string{"n": "2"}},
			},
			want: []string{"a assistant text:x"}, dropped: 1,
		},
		{
			name: "the same id with other content gets a number, and its repetition is dropped too",
			entries: []transcript.Entry{
				{ID: "a", Body: said("g", text("x"))}, {ID: "a", Body: said("g", text("y"))},
				{ID: "a", Body: said("g", text("y"))}, {ID: "a", Body: said("g", text("z"))},
			},
			want: []string{"a assistant text:x", "a#2 assistant text:y", "a#3 assistant text:z"}, dropped: 1, renamed: 2,
		},
		{
			name: "a number that is taken is passed over",
			entries: []transcript.Entry{
				{ID: "a#2", Body: said("", text("x"))}, {ID: "a", Body: said("", text("y"))}, {ID: "a", Body: said("", text("z"))},
			},
			want: []string{"a#2 assistant text:x", "a assistant text:y", "a#3 assistant text:z"}, renamed: 1,
		},
		{
			name: "results may stand between the parts of a reply",
			entries: []transcript.Entry{
				{ID: "a", Body: said("g", call("1"))}, {ID: "b", Body: answered(result("1"))},
				{ID: "c", Body: said("g", call("2"))}, {ID: "d", Body: answered(result("2"))},
			},
			want: []string{"a assistant call:1", "b tool result:1", "c assistant call:2", "d tool result:2"},
		},
		{
			name: "one id for several calls of a message: results answer them in order",
			entries: []transcript.Entry{
				{ID: "a", Body: said("g", call("x"), call("x"))}, {ID: "b", Body: said("g", call("x"))},
				{ID: "c", Body: answered(result("x"))}, {ID: "d", Body: answered(result("x"), result("x"))},
			},
			want:    []string{"a assistant call:x call:x#2", "b assistant call:x#3", "c tool result:x", "d tool result:x#2 result:x#3"},
			renamed: 2,
		},
		{
			name: "one id in several messages: the newest is answered, the older stays open",
			entries: []transcript.Entry{
				{ID: "a", Body: said("", call("x"))}, {ID: "b", Body: said("", call("x"))}, {ID: "c", Body: answered(result("x"))},
			},
			want: []string{"a assistant call:x", "b assistant call:x#2", "c tool result:x#2"}, renamed: 1,
		},
		{
			name: "a result without an id answers the first open call of the newest message",
			entries: []transcript.Entry{
				{ID: "a", Body: said("", call("x"))}, {ID: "b", Body: said("", call("y"), call("z"))},
				{ID: "c", Body: answered(result(""))}, {ID: "d", Body: answered(result(""))}, {ID: "e", Body: answered(result(""))},
				{ID: "f", Body: answered(result(""))},
			},
			want: []string{
				"a assistant call:x", "b assistant call:y call:z", "c tool result:y", "d tool result:z", "e tool result:x",
				"f/orphan-result h.orphan-result",
			},
			warnings: []string{`line 6: tool result "" answers no call before it; kept as a custom event`},
		},
		{
			name: "a call without an id gets one from its place",
			entries: []transcript.Entry{
				{ID: "a", Body: said("", call(""), call(""))}, {ID: "b", Body: answered(result(""))},
			},
			want: []string{"a assistant call:call-a call:call-a#2", "b tool result:call-a"}, renamed: 1,
		},
		{
			name: "orphans, second results and what stands with them are kept",
			entries: []transcript.Entry{
				{ID: "a", Body: said("", call("x"))}, {ID: "b", Body: answered(result("x"))}, {ID: "c", Body: answered(result("x"))},
				{ID: "d", Body: message(eventlog.RoleUser, result("nobody"), text("hi"))},
			},
			want: []string{
				"a assistant call:x", "b tool result:x", "c/orphan-result h.orphan-result", "d user text:hi",
				"d/orphan-result h.orphan-result",
			},
			warnings: []string{
				`line 3: tool result "x" answers a call that has its result; kept as a custom event`,
				`line 4: tool result "nobody" answers no call before it; kept as a custom event`,
			},
		},
		{
			name: "messages without content are kept, and empty texts beside others left out",
			entries: []transcript.Entry{
				{ID: "a", Body: message(eventlog.RoleUser)}, {ID: "b", Body: message(eventlog.RoleUser, text(""))},
				{ID: "c", Body: said("", eventlog.Thinking{})}, {ID: "d", Body: said("", text(""), call("x"))},
			},
			want: []string{
				"a/empty-message h.empty-message", "b/empty-message h.empty-message", "c/empty-message h.empty-message",
				"d assistant call:x",
			},
			warnings: []string{
				"line 1: user message has no content; kept as a custom event",
				"line 2: user message has no content; kept as a custom event",
				"line 3: assistant message has no content; kept as a custom event",
			},
		},
		{
			name: "blocks in the wrong message are kept",
			entries: []transcript.Entry{
				{ID: "a", Body: message(eventlog.RoleUser, call("x"), text("hi"))},
				{ID: "b", Body: said("", result("x"))},
				{ID: "c", Body: answered(text("hi"))},
			},
			want: []string{
				"a user text:hi", "a/misplaced-block h.misplaced-block", "b/misplaced-block h.misplaced-block",
				"c/misplaced-block h.misplaced-block",
			},
			warnings: []string{
				`line 1: tool call "x" is in a user message; kept as a custom event`,
				`line 2: tool result "x" is in a assistant message; kept as a custom event`,
				"line 3: tool message holds text besides results; kept as a custom event",
			},
		},
		{
			name: "what the wire cannot carry is replaced",
			entries: []transcript.Entry{
				{ID: "a\x00", Body: message(eventlog.RoleUser, text("n\x00l \xff\xfe"))},
			},
			want:     []string{"a� user text:n�l �"},
			warnings: []string{"line 1: NUL or invalid UTF-8 in a string replaced by U+FFFD"},
		},
		{
			name: "a call without a name",
			entries: []transcript.Entry{
				{ID: "a", Body: said("", eventlog.ToolCall{CallID: "x", Arguments: "{}"})},
			},
			want:     []string{"a assistant call:x"},
			warnings: []string{`line 1: tool call "x" has no name`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := transcript.NewBuilder("h", nil)
			s := b.Session("")
			for i, e := range tt.entries {
				e.Line = i + 1
				e.Native = []byte(`{}`)
				s.Append(e)
			}
			tr, _ := b.Finish(nil)
			if diff := cmp.Diff(tt.want, outline(tr.Sessions[0].Events)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			var warnings []string
			for _, w := range tr.Warnings {
				warnings = append(warnings, w.String())
			}
			if diff := cmp.Diff(tt.warnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if tr.DroppedDuplicates != tt.dropped || tr.RenamedIDs != tt.renamed {
				t.Errorf("dropped %d and renamed %d, want %d and %d", tr.DroppedDuplicates, tr.RenamedIDs, tt.dropped, tt.renamed)
			}
			if _, _, err := (eventlog.Head{}).Admit(tr.Sessions[0].Events); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBuilderForgets: like the log, the builder drops the oldest of very many open calls; a late result for
// one of them is kept as a custom event.
func TestBuilderForgets(t *testing.T) {
	b := transcript.NewBuilder("h", nil)
	s := b.Session("")
	for i := range eventlog.MaxOpenCalls + 2 {
		s.Append(transcript.Entry{ID: fmt.Sprint("a", i), Body: said("", call(fmt.Sprint("x", i)))})
	}
	s.Append(transcript.Entry{ID: "late", Body: answered(result("x1"))})
	s.Append(transcript.Entry{ID: "in time", Body: answered(result("x2"))})
	tr, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	events := tr.Sessions[0].Events
	want := []string{"late/orphan-result h.orphan-result", "in time tool result:x2"}
	if diff := cmp.Diff(want, outline(events[len(events)-2:])); diff != "" {
		t.Error(diff)
	}
	var head eventlog.Head
	for i := range events {
		var err error
		if head, _, err = head.Admit(events[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBuilderFinish(t *testing.T) {
	b := transcript.NewBuilder("h", nil)
	b.Session("")
	side := b.Session("sidechain-1")
	side.Append(transcript.Entry{ID: "a", Body: message(eventlog.RoleUser, text("x"))})
	b.Session("sidechain-2")
	b.Skip("z")
	b.Skip("b")
	b.Skip("z")
	tr, err := b.Finish(nil)
	if err != nil || len(tr.Sessions) != 1 || tr.Sessions[0].Suffix != "" {
		t.Errorf("want the one session that is not empty as the main one, got %+v", tr.Sessions)
	}
	if want := "left out as bookkeeping of the harness: b 1, z 2"; len(tr.Warnings) != 1 || tr.Warnings[0].String() != want {
		t.Errorf("warnings %v, want %q", tr.Warnings, want)
	}
}

// TestBuilderAdmits: the log admits whatever a reader appends, in batches of any size, and nothing is lost:
// every call and result is in a message or in a custom event.
func TestBuilderAdmits(t *testing.T) {
	ids := rapid.SampledFrom([]string{"", "x", "y", "x#2", "REDACTED", "a\x00b"})
	block := rapid.Custom(func(t *rapid.T) eventlog.Block {
		id := ids.Draw(t, "id")
		return rapid.SampledFrom([]eventlog.Block{
			text(""), text("t"), call(id), call(id), result(id), result(id), eventlog.Thinking{}, eventlog.Thinking{Signature: "s"},
			eventlog.ProviderBlock{Provider: "p", JSON: "{}"}, nil,
		}).Draw(t, "block")
	})
	entry := rapid.Custom(func(t *rapid.T) transcript.Entry {
		return transcript.Entry{
			ID:     rapid.SampledFrom([]string{"1", "2", "1#2", "3", "4", "5", "6"}).Draw(t, "entry"),
			Native: []byte(`{"native":true}`),
			Body: &eventlog.Message{
				Role:    eventlog.Role(rapid.IntRange(1, 4).Draw(t, "role")),
				GroupID: rapid.SampledFrom([]string{"", "g", "h"}).Draw(t, "group"),
				Blocks:  rapid.SliceOfN(block, 0, 4).Draw(t, "blocks"),
			},
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		b := transcript.NewBuilder("h", nil)
		s := b.Session("")
		for _, e := range rapid.SliceOfN(entry, 1, 40).Draw(t, "entries") {
			if m, ok := e.Body.(*eventlog.Message); ok && m.Role == eventlog.RoleAssistant && rapid.Bool().Draw(t, "reserve") {
				for i, bl := range m.Blocks {
					if c, ok := bl.(eventlog.ToolCall); ok {
						c.CallID = s.ReserveCallID(c.CallID)
						m.Blocks[i] = c
					}
				}
			}
			s.Append(e)
		}
		tr, _ := b.Finish(nil) // an error if nothing was said
		for _, session := range tr.Sessions {
			seen := map[string]bool{}
			for _, e := range session.Events {
				if seen[e.ID] || e.ID == "" || strings.ContainsRune(e.ID, 0) {
					t.Fatalf("bad id %q", e.ID)
				}
				seen[e.ID] = true
			}
			var head eventlog.Head
			for rest := session.Events; len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(t, "batch")
				next, _, err := head.Admit(rest[:n])
				if err != nil {
					t.Fatalf("%v in %q", err, outline(session.Events))
				}
				head, rest = next, rest[n:]
			}
		}
	})
}
