package recall_test

import (
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
)

// A page of a body without line breaks costs no more for each byte than a page of a short body. A search
// for the end of the line from each piece would take half an hour.
func TestLongLineIsPaged(t *testing.T) {
	store := memlog.New()
	body := eventlog.Text{Text: strings.Repeat("a", 128<<20)}
	push(t, store, eventlog.Event{ID: "1", Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{body}}})
	result, err := session(store, 1000).Call(t.Context(), "recall", `{"pointer":"ctx:1.0","page":2}`)
	if err != nil || !strings.Contains(result.Text, "page 2 of ") || !strings.Contains(result.Text, ", lines 1 to 1 of 1;") {
		t.Errorf("%.200q, %v", result.Text, err)
	}
}
