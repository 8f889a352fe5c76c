package harness_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// reporter is a *testing.T or a *rapid.T.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// checkTranscript checks what must hold for every transcript: the log admits it in batches of any size, ids
// are unique, strings can be sent over the wire, and JSON is valid.
func checkTranscript(t reporter, tr harness.Transcript) {
	t.Helper()
	suffixes := map[string]bool{}
	for i, s := range tr.Sessions {
		if s.Labels[transcript.LabelHarness] == "" {
			t.Errorf("session %q does not say which format it had", s.Suffix)
		}
		if suffixes[s.Suffix] {
			t.Errorf("two sessions have the suffix %q", s.Suffix)
		}
		suffixes[s.Suffix] = true
		if i == 0 && s.Suffix != "" {
			t.Errorf("the first session has the suffix %q", s.Suffix)
		}
		checkEvents(t, s)
		checkEnvelopes(t, s)
		for _, size := range []int{1, 3, 64, len(s.Events)} {
			if err := admit(s.Events, size); err != nil {
				t.Errorf("session %q in batches of %d: %v", s.Suffix, size, err)
			}
		}
	}
	for _, w := range tr.Warnings {
		checkString(t, "warning", w.Message)
	}
}

func admit(events []eventlog.Event, size int) error {
	var head eventlog.Head
	for start := 0; start < len(events); start += size {
		end := min(start+size, len(events))
		next, _, err := head.Admit(events[start:end])
		if err != nil {
			return fmt.Errorf("batch at %d: %w", start, err)
		}
		head = next
	}
	return nil
}

func checkEvents(t reporter, s harness.Session) {
	t.Helper()
	ids := map[string]bool{}
	if len(s.Events) == 0 {
		t.Errorf("session %q is empty", s.Suffix)
	}
	for k, v := range maps.All(s.Labels) {
		checkString(t, "label", k+v)
	}
	for i, e := range s.Events {
		at := fmt.Sprintf("events[%d] %s", i, e.ID)
		if e.ID == "" || ids[e.ID] {
			t.Errorf("%s: the id is empty or not unique", at)
		}
		ids[e.ID] = true
		checkString(t, at, e.ID)
		for k, v := range maps.All(e.Labels) {
			checkString(t, at, k+v)
		}
		switch b := e.Body.(type) {
		case *eventlog.Message:
			checkString(t, at, b.GroupID+b.Model)
			checkBlocks(t, at, b.Blocks)
		case *eventlog.Compaction:
			checkString(t, at, b.Summary+strings.Join(b.KeptEventIDs, ""))
			checkJSON(t, at, b.NativeJSON)
			for _, id := range b.KeptEventIDs {
				if !ids[id] {
					t.Errorf("%s keeps %q, which is not before it", at, id)
				}
			}
		case *eventlog.Custom:
			checkString(t, at, b.Type)
			checkJSON(t, at, b.JSON)
		default:
			t.Errorf("%s: unexpected body %T", at, b)
		}
	}
}

// checkEnvelopes: an envelope is stored under its event and part, so that no two may have the
// same, and its event must be one of the session's.
func checkEnvelopes(t reporter, s harness.Session) {
	t.Helper()
	events := map[string]bool{"": true}
	for _, e := range s.Events {
		events[e.ID] = true
	}
	seen := map[[2]string]bool{}
	for _, e := range s.Envelopes {
		key := [2]string{e.Event, e.Part}
		if seen[key] || !events[e.Event] {
			t.Errorf("session %q: the envelope of event %q, part %q, occurs twice or has no event", s.Suffix, e.Event, e.Part)
		}
		seen[key] = true
		checkJSON(t, "envelope of "+e.Event, e.Difference)
	}
}

func checkBlocks(t reporter, at string, blocks []eventlog.Block) {
	t.Helper()
	for _, b := range blocks {
		switch b := b.(type) {
		case eventlog.Text:
			checkString(t, at, b.Text)
		case eventlog.Thinking:
			checkString(t, at, b.Text+b.Signature+b.EncryptedContent)
		case eventlog.ToolCall:
			checkString(t, at, b.CallID+b.Name)
			if !utf8.ValidString(b.Arguments) {
				t.Errorf("%s: arguments are not UTF-8: %.200q", at, b.Arguments)
			}
		case eventlog.ToolResult:
			checkString(t, at, b.CallID+b.ToolName)
			checkBlocks(t, at, b.Content)
		case eventlog.Media:
			checkString(t, at, b.MIMEType+b.URI)
			if (b.Data == "") == (b.URI == "") {
				t.Errorf("%s: media has both data and uri, or neither", at)
			}
		case eventlog.ProviderBlock:
			checkString(t, at, b.Provider)
			checkJSON(t, at, b.JSON)
		}
	}
}

func checkString(t reporter, at, s string) {
	t.Helper()
	if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
		t.Errorf("%s: %q is not UTF-8 or holds NUL", at, s)
	}
}

func checkJSON(t reporter, at, s string) {
	t.Helper()
	if s != "" && (!json.Valid([]byte(s)) || !utf8.ValidString(s)) {
		t.Errorf("%s: %.200q is not JSON", at, s)
	}
}
