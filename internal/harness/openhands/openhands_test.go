package openhands_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/openhands"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

func read(t *testing.T, in string) transcript.Transcript {
	t.Helper()
	tr, err := openhands.Harness.Read(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestFolder: files of events are read in the order of their numbers, and other files in the folder are
// ignored.
func TestFolder(t *testing.T) {
	for _, tc := range []struct {
		name        string
		files, want []string
	}{
		{"events", []string{"10.json", "2.json", "0.json"}, []string{"0.json", "2.json", "10.json"}},
		{
			"events",
			[]string{".eventlog.lock", "event-00001-b0-1.json", "event-00000-c0-2.json", "event-100000-a0-3.json", "event-1.json", "x.json"},
			[]string{"event-00000-c0-2.json", "event-00001-b0-1.json", "event-100000-a0-3.json"},
		},
		{"events", []string{"event-00000.json", "99999999999999999999.json"}, []string{"event-00000.json"}},
		{"events", []string{"notes.json"}, []string{}},
		{"other", []string{"0.json"}, nil},
	} {
		if got := openhands.Harness.Folder(tc.name, tc.files); !cmp.Equal(got, tc.want) {
			t.Errorf("%s %q: %q, want %q", tc.name, tc.files, got, tc.want)
		}
	}
}

// TestEarlyObservations: the first versions of the SDK have a tool's result, and its failure, under other
// names.
func TestEarlyObservations(t *testing.T) {
	for _, tc := range []struct {
		name, observation, want, changed string
		failed                           bool
	}{
		{"output", `"kind":"BrowserObservation","output":"Went.","error":null`, "Went.", "", false},
		{"an error", `"kind":"StrReplaceEditorObservation","command":"str_replace","path":"/a","output":"","error":"Not there."`, "Not there.", "", true},
		{"both", `"kind":"BrowserObservation","output":"Went.","error":"Too slow."`, "Went.+Too slow.", "", true},
		{"a command that failed", `"kind":"ExecuteBashObservation","output":"no","error":false,"exit_code":null,"metadata":{"exit_code":1}`, "no", "", true},
		{"one that went wrong", `"kind":"ExecuteBashObservation","output":"no","error":true,"metadata":{"exit_code":-1}`, "no", "", true},
		{"one that still runs", `"kind":"ExecuteBashObservation","output":"yes","error":false,"metadata":{"exit_code":-1}`, "yes", "", false},
		{"an edit", `"kind":"StrReplaceEditorObservation","command":"create","path":"/a","output":"Made."`, "Made.", "/a", false},
		{"the end", `"kind":"FinishObservation","message":"Done."`, "Done.", "", false},
		{"content", `"kind":"TerminalObservation","content":[{"type":"text","text":"here"}],"output":"there","is_error":false`, "here", "", false},
	} {
		tr := read(t, `[{"kind":"ActionEvent","id":"1","timestamp":"2025-10-30T13:30:02","source":"agent","thought":[],"tool_name":"t","tool_call_id":"c","tool_call":{"id":"c","name":"t","arguments":"{}"}},
			{"kind":"ObservationEvent","id":"2","timestamp":"2025-10-30T13:30:03","source":"environment","tool_name":"t","tool_call_id":"c","observation":{`+tc.observation+`}}]`)
		e := tr.Sessions[0].Events[1]
		var got []string
		m, _ := e.Body.(*eventlog.Message)
		result, _ := m.Blocks[0].(eventlog.ToolResult)
		for _, b := range result.Content {
			text, _ := b.(eventlog.Text)
			got = append(got, text.Text)
		}
		if text := strings.Join(got, "+"); text != tc.want || result.IsError != tc.failed || e.Labels[transcript.LabelFilesChanged] != tc.changed {
			t.Errorf("%s: %q, failed %v, with the labels %v", tc.name, text, result.IsError, e.Labels)
		}
	}
}

// TestSpreadOverLines: a run gives the same events on one line and on many.
func TestSpreadOverLines(t *testing.T) {
	file, err := os.ReadFile("testdata/spread.in.json")
	if err != nil {
		t.Fatal(err)
	}
	packed := jsontext.Value(bytes.Clone(file))
	if err := packed.Compact(); err != nil {
		t.Fatal(err)
	}
	spread, line := string(file), string(packed)+"\n"
	want := read(t, line).Sessions
	for name, in := range map[string]string{
		"on many lines": spread,
		"indented":      "\n  " + spread,
		"members first": "{\n\"num_events\": 9,\n" + strings.TrimPrefix(line, "{"),
	} {
		if diff := cmp.Diff(want, read(t, in).Sessions); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if two := read(t, spread+spread).Sessions; len(two) != 2 || two[1].Suffix != "2" {
		t.Errorf("two runs on many lines are %d sessions", len(two))
	}
	const loose = `[{"kind":"MessageEvent","id":"l-1","timestamp":"2025-10-30T13:29:50","source":"user","llm_message":{"role":"user","content":"Hi."}}]`
	if both := read(t, loose+"\n"+line).Sessions; len(both) != 2 || both[1].Suffix != "2" {
		t.Errorf("a list and a run are %d sessions", len(both))
	}
	begun, _, _ := strings.Cut(spread, `"s-5"`)
	if cut := read(t, begun); len(cut.Sessions[0].Events) != 4 || len(cut.Warnings) == 0 {
		t.Errorf("of a run that is cut off %d events are read, with %v", len(cut.Sessions[0].Events), cut.Warnings)
	}
	if damaged := read(t, `{"instance_id": "cut`+"\n"+line); len(damaged.Sessions) != 1 || damaged.Sessions[0].Labels[transcript.LabelSessionID] != "spread-1" {
		t.Errorf("after a line that is cut off: %v", damaged.Sessions)
	}
}
