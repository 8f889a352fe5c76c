package opencode_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness/opencode"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// TestReadsTheSameMessages: messages give the same events in every form of a file, and warnings name the
// file's lines.
func TestReadsTheSameMessages(t *testing.T) {
	file, err := os.ReadFile("testdata/session.in.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(file, &document); err != nil {
		t.Fatal(err)
	}
	whole, err := opencode.Harness.Read(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	said := "Exporting session: ses_1\n"
	for _, form := range []struct {
		name, file, session string
	}{
		{"after what the command says", said + string(file), whole.Sessions[0].Labels["harness.session_id"]},
		{"a list", "[" + string(bytes.Join(compacted(t, document.Messages), []byte(",\n"))) + "]", sessionOf(t, document.Messages)},
		{"one a line", string(bytes.Join(compacted(t, document.Messages), []byte("\n"))) + "\n", sessionOf(t, document.Messages)},
	} {
		t.Run(form.name, func(t *testing.T) {
			got, err := opencode.Harness.Read(bytes.NewReader([]byte(form.file)))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Sessions[0].Events, whole.Sessions[0].Events) {
				t.Errorf("%d events differ from %d", len(got.Sessions[0].Events), len(whole.Sessions[0].Events))
			}
			if id := got.Sessions[0].Labels["harness.session_id"]; id != form.session {
				t.Errorf("session %q instead of %q", id, form.session)
			}
		})
	}
	damaged, err := opencode.Harness.Read(bytes.NewReader([]byte(said + `{"info":{"id":"ses_1"},"messages":[
{"info":{"id":"msg_1","role":"user"},"parts":[{"type":"text","text":"hi"}]},
{"info":{"id":"msg_2","role":7},"parts":[]}]}`)))
	if err != nil || len(damaged.Warnings) == 0 || damaged.Warnings[0].Line != 4 {
		t.Errorf("warnings %v, %v", damaged.Warnings, err)
	}
}

func compacted(t *testing.T, messages []json.RawMessage) (out [][]byte) {
	t.Helper()
	for _, m := range messages {
		var one bytes.Buffer
		if err := json.Compact(&one, m); err != nil {
			t.Fatal(err)
		}
		out = append(out, one.Bytes())
	}
	return out
}

// sessionOf is the session id in the messages.
func sessionOf(t *testing.T, messages []json.RawMessage) string {
	t.Helper()
	for _, m := range messages {
		var one struct {
			Info struct {
				SessionID string `json:"sessionID"`
			} `json:"info"`
		}
		if err := json.Unmarshal(m, &one); err != nil {
			t.Fatal(err)
		}
		if one.Info.SessionID != "" {
			return one.Info.SessionID
		}
	}
	return ""
}

// TestPrinted reads parts of two replies, as `opencode run --format json` prints them.
func TestPrinted(t *testing.T) {
	const file = `{"type":"step_start","timestamp":1772500000000,"sessionID":"ses_1","part":{"id":"prt_1","sessionID":"ses_1","messageID":"msg_1","type":"step-start"}}
{"type":"tool_use","timestamp":1772500001000,"sessionID":"ses_1","part":{"id":"prt_2","sessionID":"ses_1","messageID":"msg_1","type":"tool","callID":"c1","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":"a.go","metadata":{"exit":0},"time":{"start":1,"end":2}}}}
{"type":"error","timestamp":1772500002000,"sessionID":"ses_1","error":{"name":"APIError"}}
{"type":"text","timestamp":1772500003000,"sessionID":"ses_1","part":{"id":"prt_3","sessionID":"ses_1","messageID":"msg_2","type":"text","text":"Done."}}
`
	if !opencode.Harness.Detect(transcript.NewProbe([]byte(file))) {
		t.Error("not recognised")
	}
	got, err := opencode.Harness.Read(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range got.Sessions[0].Events {
		said = append(said, fmt.Sprint(e.ID, e.Body.(*eventlog.Message).Blocks))
	}
	want := []string{`msg_1[{c1 bash {"command":"ls"}}]`, "msg_1/result-1[{c1 bash [{a.go}] false}]", "msg_2[{Done.}]"}
	if !slices.Equal(said, want) {
		t.Errorf("%q instead of %q", said, want)
	}
}
