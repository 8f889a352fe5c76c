package codex

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRollback: exactly the messages of the turns that were taken back count as abandoned.
func TestRollback(t *testing.T) {
	back := func(turns int) string {
		return fmt.Sprintf(`{"timestamp":"2026-06-26T12:24:15.000Z","type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":%d}}`, turns)
	}
	environment := asks(part("<environment_context>x</environment_context>"), "")
	agent := `{"timestamp":"2026-06-26T12:24:13.000Z","type":"response_item","payload":{"type":"agent_message","author":"/root","recipient":"/root/a","content":[{"type":"input_text","text":"Look."}]}}`
	for name, tc := range map[string]struct {
		records []string
		left    []string
	}{
		"none":                {[]string{asks(part("a"), ""), speaks}, nil},
		"one turn":            {[]string{asks(part("a"), ""), speaks, asks(part("b"), ""), speaks, back(1), asks(part("c"), "")}, []string{"line-3", "line-4"}},
		"with what is added":  {[]string{asks(part("a"), ""), speaks, environment, asks(part("b"), ""), back(1)}, []string{"line-3", "line-4"}},
		"more than there are": {[]string{environment, asks(part("a"), ""), speaks, back(9), asks(part("b"), "")}, []string{"line-2", "line-3"}},
		"twice":               {[]string{asks(part("a"), ""), asks(part("b"), ""), back(1), asks(part("c"), ""), back(2), asks(part("d"), "")}, []string{"line-1", "line-2", "line-4"}},
		"an agent's turn":     {[]string{asks(part("a"), ""), agent, speaks, back(1)}, []string{"line-2", "line-3"}},
		"no turns":            {[]string{asks(part("a"), ""), back(0), back(-1)}, nil},
	} {
		tr, err := read(strings.NewReader(strings.Join(tc.records, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		var gone []string
		for id := range Harness.Branches.Left(tr.Sessions[0].Events) {
			gone = append(gone, id)
		}
		slices.Sort(gone)
		if diff := cmp.Diff(tc.left, gone); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
