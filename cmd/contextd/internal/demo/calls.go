package demo

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// callsOf counts the tool calls in events.
func callsOf(events []*contextdv1.Event) int {
	n := 0
	for _, e := range events {
		for _, b := range e.GetMessage().GetBlocks() {
			if b.GetToolCall() != nil {
				n++
			}
		}
	}
	return n
}

// checkPairs returns an error for a tool call without a result, or a result without a call, since providers
// refuse such requests. Results must directly follow their calls.
func checkPairs(messages []*contextdv1.RenderedMessage) error {
	open := map[string]bool{}
	wasAssistant := false
	for _, m := range messages {
		assistant := m.GetMessage().GetRole() == contextdv1.Role_ROLE_ASSISTANT
		// One answer of the model may be several messages.
		goesOn := assistant && wasAssistant
		wasAssistant = assistant
		for _, b := range m.GetMessage().GetBlocks() {
			result := b.GetToolResult()
			switch {
			case result != nil && !open[result.GetCallId()]:
				return fmt.Errorf("message %d answers %s, which is not open", m.GetIndex(), result.GetCallId())
			case result != nil:
				delete(open, result.GetCallId())
			case len(open) > 0 && !goesOn:
				return fmt.Errorf("message %d comes before the result of %s", m.GetIndex(), anyOf(open))
			}
			if call := b.GetToolCall(); call != nil {
				goesOn = true // more calls may follow
				open[call.GetCallId()] = true
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%s has no result", anyOf(open))
	}
	return nil
}

func anyOf(open map[string]bool) string { return slices.Min(slices.Collect(maps.Keys(open))) }

// visibleCalls counts the tool calls that the model sees: in messages, in full or with a stubbed result, and
// in the ledger.
func visibleCalls(messages []*contextdv1.RenderedMessage) int {
	n := 0
	for _, m := range messages {
		for _, b := range m.GetMessage().GetBlocks() {
			if b.GetToolCall() != nil {
				n++
			}
		}
		if m.GetOrigin() == contextdv1.Origin_ORIGIN_SUMMARY {
			lines, _ := ledgerOf(textOf(m.GetMessage()))
			n += lines
		}
	}
	return n
}

// A line of the ledger is for one call, for several similar calls, or sums up a tool's calls.
var (
	ledgerLine = regexp.MustCompile(` → (?:ok|error|interrupted)(?: ×(\d+))?(?: (ctx:\d+\.\d+))?$`)
	ledgerSum  = regexp.MustCompile(`^.* ×(\d+)(?:, \d+ (?:error|interrupted))*$`)
)

// ledgerOf counts the calls in a digest's ledger, and returns its pointers.
func ledgerOf(digest string) (calls int, pointers []string) {
	_, ledger, ok := strings.Cut(digest, "\nEarlier tool calls (")
	if !ok {
		return 0, nil
	}
	ledger, _, _ = strings.Cut(ledger, "\n\n")
	_, ledger, _ = strings.Cut(ledger, "\n")
	for line := range strings.Lines(ledger) {
		line = strings.TrimSuffix(line, "\n")
		if found := ledgerLine.FindStringSubmatch(line); found != nil {
			calls += times(found[1])
			if found[2] != "" {
				pointers = append(pointers, found[2])
			}
		} else if found := ledgerSum.FindStringSubmatch(line); found != nil {
			calls += times(found[1])
		}
	}
	return calls, pointers
}

func textOf(m *contextdv1.Message) string {
	var out strings.Builder
	for _, b := range m.GetBlocks() {
		out.WriteString(b.GetText().GetText())
	}
	return out.String()
}

// times is the number of calls on a line; a line without a number is one call.
func times(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 1
	}
	return n
}
