package openhands_test

import (
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
)

// TestAroundOutput: what the shell says around an output is read, since the model acts on it, and a command that
// still runs has not failed.
func TestAroundOutput(t *testing.T) {
	const (
		waits = `\n[The command has no new output after 10 seconds. Send C-c.]`
		done  = `\n[The command completed with exit code 0.]`
		wrong = `\n[The command completed with exit code 2.]`
		below = `[Below is the output of the previous command.]\n`
	)
	for _, tc := range []struct {
		name, output, metadata, want string
		failed                       bool
	}{
		{"still runs", "a", `"exit_code":-1,"prefix":"","suffix":"` + waits + `"`, "a" + waits, false},
		{"says nothing yet", "", `"exit_code":-1,"suffix":"` + waits + `"`, waits, false},
		{"goes on", "b", `"exit_code":-1,"prefix":"` + below + `","suffix":"` + waits + `"`, below + "b" + waits, false},
		{"ended", "c", `"exit_code":0,"suffix":"` + done + `"`, "c", false},
		{"failed", "d", `"exit_code":2,"suffix":"` + wrong + `"`, "d" + wrong, true},
	} {
		for form, file := range map[string]string{
			"of before version 1": `[{"id":1,"timestamp":"2025-06-02T10:00:01","source":"agent","action":"run","args":{"command":"x"}},
				{"id":2,"timestamp":"2025-06-02T10:00:02","source":"agent","observation":"run","content":"` + tc.output + `","cause":1,"extras":{"metadata":{` + tc.metadata + `}}}]`,
			"of the SDK": `[{"kind":"ActionEvent","id":"1","timestamp":"2025-10-30T13:30:02","source":"agent","thought":[],"tool_name":"t","tool_call_id":"c","tool_call":{"id":"c","name":"t","arguments":"{}"}},
				{"kind":"ObservationEvent","id":"2","timestamp":"2025-10-30T13:30:03","source":"environment","tool_name":"t","tool_call_id":"c","observation":{"kind":"ExecuteBashObservation","output":"` + tc.output + `","metadata":{` + tc.metadata + `}}}]`,
		} {
			m, _ := read(t, file).Sessions[0].Events[1].Body.(*eventlog.Message)
			result, _ := m.Blocks[0].(eventlog.ToolResult)
			var got strings.Builder
			for _, b := range result.Content {
				text, _ := b.(eventlog.Text)
				got.WriteString(text.Text)
			}
			if want := strings.ReplaceAll(tc.want, `\n`, "\n"); got.String() != want || result.IsError != tc.failed {
				t.Errorf("%s, %s: %q, failed %v; want %q", tc.name, form, got.String(), result.IsError, want)
			}
		}
	}
}
