package assemble_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
)

// audit checks the invariants of every context: it fits its target, each call has its result after it and
// each result its call, and the calls shown plus the calls that the ledger counts are as many as were made.
func audit(tb rapid.TB, c *assemble.Context, made int) {
	tb.Helper()
	if c.Budget.Projected > c.Budget.Target {
		tb.Fatalf("%s: %d tokens of %d", c.Projection.ID, c.Budget.Projected, c.Budget.Target)
	}
	shown := 0
	var open []string
	for _, m := range c.Messages {
		var calls, results []string
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case eventlog.ToolCall:
				calls = append(calls, b.CallID)
			case eventlog.ToolResult:
				results = append(results, b.CallID)
			}
		}
		for _, id := range results {
			if len(open) == 0 || open[0] != id {
				tb.Fatalf("%s: a result of %s where %v are due:\n%s", c.Projection.ID, id, open, lines(c.Messages))
			}
			open = open[1:]
			shown++
		}
		if len(open) > 0 && len(results) == 0 {
			tb.Fatalf("%s: %v have no results", c.Projection.ID, open)
		}
		open = append(open, calls...)
	}
	if len(open) > 0 {
		tb.Fatalf("%s: %v have no results", c.Projection.ID, open)
	}
	counted, listed := ledgerOf(tb, digestOf(c))
	if counted != listed {
		tb.Fatalf("%s: the ledger says %d calls and lists %d:\n%s", c.Projection.ID, counted, listed, digestOf(c))
	}
	if shown+counted != made {
		tb.Fatalf("%s: %d calls are shown and %d are in the ledger; %d were made", c.Projection.ID, shown, counted, made)
	}
}

var (
	ledgerHeading = regexp.MustCompile(`(?m)^Earlier tool calls \((\d+)\), oldest first:\n`)
	ledgerTimes   = regexp.MustCompile(`^(?:.* → (?:ok|error|interrupted))?(?: ×(\d+))?(?:, \d+ \w+)*(?: ctx:\d+\.\d+)?$`)
	ledgerTotal   = regexp.MustCompile(`^[^→]* ×(\d+)(?:, \d+ (?:error|interrupted))*$`)
)

// ledgerOf reads from a digest how many calls its heading counts, and how many its lines add up to.
func ledgerOf(tb rapid.TB, digest string) (counted, listed int) {
	tb.Helper()
	at := ledgerHeading.FindStringSubmatchIndex(digest)
	if at == nil {
		return 0, 0
	}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			tb.Fatal(err)
		}
		return n
	}
	rest, _, _ := strings.Cut(digest[at[1]:], "\n\n")
	for line := range strings.Lines(strings.TrimSuffix(rest, "\n") + "\n") {
		line = strings.TrimSuffix(line, "\n")
		found := ledgerTotal.FindStringSubmatch(line)
		if found == nil {
			found = ledgerTimes.FindStringSubmatch(line)
		}
		switch {
		case found == nil:
			tb.Fatalf("%q is no line of a ledger", line)
		case found[1] == "":
			listed++
		default:
			listed += number(found[1])
		}
	}
	return number(digest[at[2]:at[3]]), listed
}

// busyTurn is a turn with calls that are hard to keep paired: every third turn has two calls at once, every
// fifth fails, and every seventh is interrupted. It returns the number of calls.
func busyTurn(i int) (events []eventlog.Event, calls int) {
	events, calls = turn(1_000+i), 1
	last := len(events) - 1
	message := events[last-1].Body.(*eventlog.Message)
	if i%3 == 0 {
		id := fmt.Sprintf("search_%d", i)
		message.Blocks = append(message.Blocks, eventlog.ToolCall{CallID: id, Name: "search", Arguments: fmt.Sprintf(`{"query":"leak %d"}`, i%9)})
		events = append(events, eventlog.Event{ID: id, Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{
			eventlog.ToolResult{CallID: id, ToolName: "search", Content: []eventlog.Block{eventlog.Text{Text: strings.Repeat("nothing found\n", 40)}}},
		}}})
		calls = 2
	}
	result := events[last].Body.(*eventlog.Message).Blocks[0].(eventlog.ToolResult)
	if i%5 == 0 {
		result.IsError = true
		events[last].Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{result}}
	}
	if i%7 == 0 { // the result never comes
		events = append(events[:last], events[last+1:]...)
	}
	return events, calls
}
