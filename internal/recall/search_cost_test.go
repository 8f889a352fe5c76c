package recall_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/recall"
)

// A long text costs no more for each byte than a short one, whatever the log repeats. As a regular
// expression, this one would take most of an hour.
func TestLongTextIsFound(t *testing.T) {
	store := memlog.New()
	body := eventlog.Text{Text: strings.Repeat("a", 16<<20) + "b"}
	for _, id := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		push(t, store, eventlog.Event{ID: id, Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{body}}})
	}
	result, err := session(store, 1000).Call(t.Context(), recall.SearchLog, `{"text":"`+strings.Repeat("A", 999)+`B"}`)
	if err != nil || !strings.HasPrefix(result.Text, "[contextd: 8 places for ") {
		t.Errorf("%.100q, %v", result.Text, err)
	}
}

// A search for a costly pattern ends when it has used up its cost, and the model can continue it.
func TestCostlyExpressionStops(t *testing.T) {
	store := memlog.New()
	push(t, store, event(t, "1", "user ${x*3000000}c"), event(t, "2", "user ${x*1000000}c"), event(t, "3", "user xc"))
	ask := func(arguments string) recall.Result {
		t.Helper()
		result, err := session(store, 1000).Call(t.Context(), recall.SearchLog, arguments)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	pattern := `"pattern":"(x|[c-d]{800}e)c"`
	if got := ask(`{` + pattern + `}`); got.Failed || !strings.Contains(got.Text, "in events 3 to 3 of this conversation") ||
		!strings.Contains(got.Text, "before: 3)") || !strings.Contains(got.Text, "ctx:3.0 a user message") {
		t.Errorf("the newest event is searched alone: %.500q", got.Text)
	}
	if got := ask(`{` + pattern + `,"before":2}`); !got.Failed || !strings.Contains(got.Text, "is too costly for event 1, of more than 1") ||
		!strings.Contains(got.Text, "before: 1)") {
		t.Errorf("event 1 is too large: %.500q", got.Text)
	}
	if got := ask(`{"pattern":"xc","before":2}`); got.Failed || !strings.Contains(got.Text, "1 place for") {
		t.Errorf("a small expression finds it: %.500q", got.Text)
	}
}

// The strings of a call's arguments are joined once, not once for each of them.
func TestManyStringsOfACall(t *testing.T) {
	store := memlog.New()
	arguments := `["\n"` + strings.Repeat(`,"a"`, 20_000) + `]`
	push(t, store, eventlog.Event{ID: "1", Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{
		eventlog.ToolCall{CallID: "c", Name: "t", Arguments: arguments},
	}}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	result, err := session(store, 1000).Call(t.Context(), recall.SearchLog, `{"text":"nowhere to be found"}`)
	runtime.ReadMemStats(&after)
	if most := 100 * uint64(len(arguments)); err != nil || result.Failed || after.TotalAlloc-before.TotalAlloc > most {
		t.Errorf("%d bytes for arguments of %d: %.100q, %v", after.TotalAlloc-before.TotalAlloc, len(arguments), result.Text, err)
	}
}

// countedLog counts the events that are read.
type countedLog struct {
	eventlog.Reader
	events int
}

func (l *countedLog) Read(ctx context.Context, id string, from, to eventlog.Seq) iter.Seq2[eventlog.Event, error] {
	return func(yield func(eventlog.Event, error) bool) {
		for event, err := range l.Reader.Read(ctx, id, from, to) {
			if l.events++; !yield(event, err) {
				return
			}
		}
	}
}

// The event with many results is not read again for each of those that a search finds.
func TestManyResultsOfAnEvent(t *testing.T) {
	const results = eventlog.MaxOpenCalls
	var called, returned []eventlog.Block
	for i := range results {
		called = append(called, eventlog.ToolCall{CallID: fmt.Sprint(i), Name: "t", Arguments: "{}"})
		returned = append(returned, eventlog.ToolResult{CallID: fmt.Sprint(i), Content: []eventlog.Block{eventlog.Text{Text: "found"}}})
	}
	store := memlog.New()
	push(t, store,
		eventlog.Event{ID: "1", Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: called}},
		eventlog.Event{ID: "2", Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: returned}},
	)
	s, log := session(store, 1000), &countedLog{Reader: store}
	s.Log = log
	result, err := s.Call(t.Context(), recall.SearchLog, `{"text":"found"}`)
	if err != nil || log.events > 8 || !strings.HasPrefix(result.Text, fmt.Sprintf("[contextd: %d places for ", results)) ||
		!strings.Contains(result.Text, "ctx:2.1023 the result of t, 1 line\n") {
		t.Errorf("%d events are read for %.200q, %v", log.events, result.Text, err)
	}
}

// An answer lists only some of the places of an event that has very many, and says how many more there are.
func TestManyPlacesOfAnEvent(t *testing.T) {
	const blocks = 5_000
	said := make([]eventlog.Block, blocks)
	for i := range said {
		said[i] = eventlog.Text{Text: "found"}
	}
	store := memlog.New()
	push(t, store,
		eventlog.Event{ID: "1", Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: "found"}}}},
		eventlog.Event{ID: "2", Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: said}},
	)
	result, err := session(store, 1000).Call(t.Context(), recall.SearchLog, `{"text":"found","limit":50}`)
	if err != nil || len(result.Text) > 5_000 || !strings.Contains(result.Text, "5000 places for ") ||
		!strings.Contains(result.Text, "ctx:2.4999 a user message, 1 line\n") || !strings.HasSuffix(result.Text, "  and 4950 places more in event 2\n") ||
		!strings.Contains(result.Text, "before: 2)") {
		t.Errorf("%d bytes: %.300q, %v", len(result.Text), result.Text, err)
	}
	missing, err := session(store, 1000).Call(t.Context(), recall.Recall, `{"pointer":"ctx:2.5000"}`)
	if err != nil || !missing.Failed || len(missing.Text) > 300 {
		t.Errorf("%d bytes: %.300q, %v", len(missing.Text), missing.Text, err)
	}
}
