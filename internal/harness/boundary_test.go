package harness_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
)

// TestCodexBoundary: in the place of what was dropped the model reads the list that replaced the prompt; the
// summary counts only where there is no list, or where the list has it.
func TestCodexBoundary(t *testing.T) {
	const (
		secret  = `{"type":"compaction","encrypted_content":"gAAA"}`
		asked   = `{"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]}`
		summary = `{"type":"message","role":"user","content":[{"type":"input_text","text":"So far."}]}`
	)
	block := eventlog.ProviderBlock{Provider: "openai", JSON: secret}
	text := eventlog.Text{Text: "So far."}
	for _, tc := range []struct {
		summary, payload string
		want             []eventlog.Block
	}{
		{"So far.", `{"message":"So far."}`, []eventlog.Block{text}},
		{"So far.", `{"message":"So far.","replacement_history":[` + asked + `,` + summary + `]}`, []eventlog.Block{text}},
		{"So far.", `{"message":"So far.","replacement_history":[` + asked + `,` + secret + `]}`, []eventlog.Block{block}},
		{"", `{"message":"","replacement_history":[` + asked + `,` + secret + `]}`, []eventlog.Block{block}},
		{"", `{"message":"","replacement_history":[` + asked + `]}`, nil},
	} {
		got := harness.BoundaryOf(&eventlog.Compaction{Summary: tc.summary, NativeJSON: `{"type":"compacted","payload":` + tc.payload + `}`})
		if !got.Last || !reflect.DeepEqual(got.Blocks, tc.want) {
			t.Errorf("%s gives %+v", tc.payload, got)
		}
	}
}

// TestUnreadBoundary: where a compaction has no summary, a harness that resumes from the file must show the
// model the whole conversation. So the file has none of the marks by which the harness drops messages, and
// yet the reader finds the compaction.
func TestUnreadBoundary(t *testing.T) {
	events := []eventlog.Event{
		{ID: "u1", Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: "First."}}}},
		{ID: "a1", Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{eventlog.Text{Text: "Done."}}}},
		{ID: "c1", Body: &eventlog.Compaction{Trigger: eventlog.TriggerManual, KeptEventIDs: []string{"a1"}, NativeJSON: `{"$set":{}}`}},
		{ID: "u2", Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: "Second."}}}},
	}
	for name, marks := range map[string][]string{"claude": {"compact_boundary", "isCompactSummary"}, "codex": {`"compacted"`, "replacement_history"}} {
		t.Run(name, func(t *testing.T) {
			tr := harness.Transcript{Sessions: []harness.Session{{Events: events, Labels: map[string]string{"harness.format": "gemini-cli"}}}}
			var first []byte
			for range 2 { // and again from what was read
				var file bytes.Buffer
				report, err := harness.Write(&file, tr, name, harness.WriteOptions{})
				if err != nil || report.Compactions != 1 {
					t.Fatalf("%+v, %v", report, err)
				}
				for _, mark := range marks {
					if strings.Contains(file.String(), mark) {
						t.Errorf("%s stands in\n%s", mark, file.String())
					}
				}
				if first == nil {
					first = file.Bytes()
				} else if !bytes.Equal(first, file.Bytes()) {
					t.Errorf("written again it is\n%s\nand was\n%s", file.Bytes(), first)
				}
				if tr, err = harness.Read(bytes.NewReader(file.Bytes()), name); err != nil {
					t.Fatal(err)
				}
				checkUnread(t, tr)
			}
		})
	}
}

func checkUnread(t *testing.T, tr harness.Transcript) {
	t.Helper()
	var said []string
	ids := map[string]string{}
	for _, e := range tr.Sessions[0].Events {
		switch b := e.Body.(type) {
		case *eventlog.Message:
			text := b.Blocks[0].(eventlog.Text).Text
			said = append(said, text)
			ids[e.ID] = text
		case *eventlog.Compaction:
			var kept []string
			for _, id := range b.KeptEventIDs {
				kept = append(kept, ids[id])
			}
			said = append(said, fmt.Sprintf("compaction %d keeps %s", b.Trigger, kept))
			if len(harness.BoundaryOf(b).Blocks) > 0 {
				t.Errorf("%+v stands for what left", harness.BoundaryOf(b))
			}
		}
	}
	if left := harness.Left(tr.Sessions[0].Events); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	want := []string{"First.", "Done.", fmt.Sprintf("compaction %d keeps [Done.]", eventlog.TriggerManual), "Second."}
	if !slices.Equal(said, want) {
		t.Errorf("it reads %q", said)
	}
}
