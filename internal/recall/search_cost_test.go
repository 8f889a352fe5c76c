package recall_test

import (
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
