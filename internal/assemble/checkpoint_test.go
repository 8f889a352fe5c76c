package assemble_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
)

// readingStore counts the events that are read.
type readingStore struct {
	eventlog.Store
	read int
}

func (s *readingStore) Read(ctx context.Context, id string, from, to eventlog.Seq) iter.Seq2[eventlog.Event, error] {
	return func(yield func(eventlog.Event, error) bool) {
		for e, err := range s.Store.Read(ctx, id, from, to) {
			s.read++
			if !yield(e, err) {
				return
			}
		}
	}
}

// The first assembly after a start reads what is shown, however long the log is, and answers what
// one that reads the whole log answers.
func TestColdReadsWhatIsShown(t *testing.T) {
	for _, events := range []int{1_000, 12_000} {
		t.Run(fmt.Sprint(events), func(t *testing.T) {
			store := &readingStore{Store: memlog.New()}
			next := fill(t, store, events)
			warm := newEngine(t, store)
			req := windowOf(32_768)
			last := mustAssemble(t, warm, req)
			for range 60 {
				push(t, store, "s", turn(next)...)
				next++
				store.read = 0
				req.Preview = true
				got := mustAssemble(t, newEngine(t, store), req)
				shown := got.Projection.Kept.Len() + got.Projection.Redacted.Len()
				cut := got.Projection.After.CollapsedThrough > last.Projection.After.CollapsedThrough // which needs what is dropped
				if most := 3*shown + 20; store.read > most && !cut {
					t.Errorf("%d events were read to show %d of %d; %d, %d", store.read, shown, got.AsOf, got.Projection.After.CollapsedThrough, last.Projection.After.CollapsedThrough)
				}
				req.Preview = false
				want := mustAssemble(t, warm, req)
				last = want
				if got.PrefixHash != want.PrefixHash || lines(got.Messages) != lines(want.Messages) {
					t.Fatalf("at event %d a start shows something else", got.AsOf)
				}
			}
		})
	}
}

// What a start cannot know of dropped groups it reads: a call id that was used before, and a
// result that comes late.
func TestWhatIsNotInTheCheckpointIsRead(t *testing.T) {
	call := func(id, event string) eventlog.Event {
		return eventlog.Event{ID: event, Body: &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: event, Blocks: []eventlog.Block{
			eventlog.ToolCall{CallID: id, Name: "read_file", Arguments: `{"path":"late.go"}`},
		}}}
	}
	inGroup := func(group string) eventlog.Event {
		return eventlog.Event{ID: "more", Body: &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: group, Blocks: []eventlog.Block{eventlog.Text{Text: "And more."}}}}
	}
	result := func(id, event string) eventlog.Event {
		return eventlog.Event{ID: event, Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{
			eventlog.ToolResult{CallID: id, ToolName: "read_file", Content: []eventlog.Block{eventlog.Text{Text: "package late"}}},
		}}}
	}
	for name, then := range map[string][]eventlog.Event{
		"a late result":  {result("late", "late-result")},
		"an id again":    {call("call_3", "again"), result("call_3", "again-result")},
		"a group again":  {inGroup("late-call")},
		"nothing of it":  {call("new", "new-call"), result("new", "new-result")},
		"a human's word": {text("word", eventlog.RoleUser, "Stop.")},
	} {
		t.Run(name, func(t *testing.T) {
			store := memlog.New()
			push(t, store, "s", opening()...)
			push(t, store, "s", call("late", "late-call"))
			warm := newEngine(t, store)
			req := request()
			for i := range 60 {
				push(t, store, "s", turn(i)...)
				mustAssemble(t, warm, req)
			}
			push(t, store, "s", then...)
			var contexts []*assemble.Context
			for _, engine := range []*assemble.Engine{newEngine(t, store), warm} {
				req.Preview = engine != warm
				contexts = append(contexts, mustAssemble(t, engine, req))
			}
			if contexts[0].PrefixHash != contexts[1].PrefixHash {
				t.Errorf("a start shows\n%s\nand who read the whole log\n%s", lines(contexts[0].Messages), lines(contexts[1].Messages))
			}
		})
	}
}
