package harness_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
)

// counted counts the bytes that are written to it.
type counted int

func (c *counted) Write(p []byte) (int, error) {
	*c += counted(len(p))
	return len(p), nil
}

// TestKeptAgain: what very many compactions keep is not written again for each of them without a limit.
func TestKeptAgain(t *testing.T) {
	const large, compactions = 1 << 20, 500
	say := func(id, text string) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: text}}}}
	}
	events := []eventlog.Event{say("first", "Go."), say("large", strings.Repeat("x", large)), say("last", "Go on.")}
	for i := range compactions {
		events = append(events, eventlog.Event{ID: fmt.Sprint("c", i), Body: &eventlog.Compaction{Summary: "s", KeptEventIDs: []string{"large", "large"}}})
	}
	for _, name := range []string{"claude", "codex", "opencode", "pi"} {
		var bytes counted
		report, err := harness.Write(&bytes, harness.Transcript{Sessions: []harness.Session{{Events: events}}}, name, harness.WriteOptions{})
		if err != nil || bytes > 100*large || report.Compactions != compactions {
			t.Errorf("%s: %d bytes, %d compactions, %v", name, bytes, report.Compactions, err)
		}
	}
}
