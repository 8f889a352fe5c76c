package pi_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness/pi"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// TestSealsOfOthers: what another harness's session has sealed is written where pi has a place for it, and read again.
func TestSealsOfOthers(t *testing.T) {
	const (
		one  = `{"type":"reasoning.encrypted","data":"b25l","id":"t1","index":0}`
		two  = `{"type":"reasoning.encrypted","data":"dHdv","id":"t2","index":1}`
		text = `{"type":"reasoning.text","text":"Hm","signature":"c2ln"}`
	)
	call := func(id string) eventlog.Block { return eventlog.ToolCall{CallID: id, Name: "ls", Arguments: "{}"} }
	details := func(list string) eventlog.Block {
		return eventlog.Thinking{Text: "Hm", Signature: `{"reasoning_details":[` + list + `]}`}
	}
	member := func(by, json string) eventlog.Block { return eventlog.ProviderBlock{Provider: by, JSON: json} }
	for _, c := range []struct {
		name        string
		given, want []eventlog.Block // the same if want is nil
		warned      bool
	}{
		{"details of calls", []eventlog.Block{details(one + "," + two), call("t1"), call("t2")}, nil, false},
		{
			"a detail of text", []eventlog.Block{details(text + "," + one), call("t1")},
			[]eventlog.Block{details(one), call("t1")}, true,
		},
		{
			"a detail of no call", []eventlog.Block{details(two), call("t1")},
			[]eventlog.Block{eventlog.Thinking{Text: "Hm"}, call("t1")}, true,
		},
		{
			"LiteLLM's", []eventlog.Block{eventlog.Thinking{Text: "Hm", Signature: `{"thinking_blocks":[{"type":"thinking","thinking":"Hm","signature":"c2ln"}]}`}, call("t1")},
			[]eventlog.Block{eventlog.Thinking{Text: "Hm"}, call("t1")}, true,
		},
		{"Google's of a call", []eventlog.Block{member("google", `{"thoughtSignature":"c2ln"}`), call("t1")}, nil, false},
		{
			"Google's of a text", []eventlog.Block{
				member("google", `{"thoughtSignature":"c2ln"}`), eventlog.Text{Text: "I look."}, call("t1"),
			}, nil, false,
		},
		{
			"a phase", []eventlog.Block{
				member("openai", `{"phase":"commentary"}`), eventlog.Text{Text: "I look."}, call("t1"),
			}, nil, false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := eventlog.Event{ID: "a", Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: c.given}}
			var out bytes.Buffer
			report, err := pi.Harness.Write(&out, transcript.Transcript{Sessions: []transcript.Session{{Events: []eventlog.Event{e}}}}, transcript.WriteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if warned := strings.Contains(fmt.Sprint(report.Warnings), "seal of a host"); warned != c.warned {
				t.Errorf("the warnings are %v", report.Warnings)
			}
			again, err := pi.Harness.Read(&out)
			if err != nil {
				t.Fatal(err)
			}
			want := c.want
			if want == nil {
				want = c.given
			}
			m, ok := again.Sessions[0].Events[0].Body.(*eventlog.Message)
			if !ok || !slices.Equal(m.Blocks, want) {
				t.Errorf("it became %+v", again.Sessions[0].Events[0].Body)
			}
		})
	}
}
