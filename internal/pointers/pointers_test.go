package pointers_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

var (
	asked  = eventlog.Text{Text: "Begin."}
	said   = eventlog.Text{Text: "I look."}
	called = eventlog.ToolCall{CallID: "c1", Name: "grep", Arguments: `{}`}
	found  = eventlog.ToolResult{CallID: "c1", Content: []eventlog.Block{eventlog.Text{Text: "fünf"}}}
)

// log has a session s: a question, a text with a call, and a result that does not name its tool.
func log(t *testing.T) eventlog.Store {
	t.Helper()
	store := memlog.New()
	if _, err := store.CreateSession(t.Context(), eventlog.Session{ID: "s", CreateTime: time.Unix(1, 0)}); err != nil {
		t.Fatal(err)
	}
	message := func(id string, role eventlog.Role, blocks ...eventlog.Block) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{Role: role, Blocks: blocks}}
	}
	commit, err := store.Append(t.Context(), "s", eventlog.Batch{Time: time.Unix(2, 0), Events: []eventlog.Event{
		message("1", eventlog.RoleUser, asked), message("2", eventlog.RoleAssistant, said, called), message("3", eventlog.RoleTool, found),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := commit.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

func TestResolve(t *testing.T) {
	store := log(t)
	for _, c := range []struct {
		session, pointer string
		seq              eventlog.Seq
		want             eventlog.Block
		err              string
	}{
		{session: "s", pointer: "ctx:1.0", seq: 1, want: asked},
		{session: "s", pointer: "ctx:2.1", seq: 2, want: called},
		{session: "s", pointer: "ctx:3.0", seq: 3, want: found},
		{session: "s", pointer: "ctx:1.1", err: `pointer "ctx:1.1" does not exist; event 1 has ctx:1.0 alone`},
		{session: "s", pointer: "ctx:2.2", err: `pointer "ctx:2.2" does not exist; event 2 has ctx:2.0 to ctx:2.1`},
		{session: "s", pointer: "ctx:4.0", err: `event "4" does not exist; the log has events 1 to 3`},
		{session: "t", pointer: "ctx:1.0", err: (&eventlog.NotFoundError{Kind: "session", Name: "t"}).Error()},
	} {
		event, block, err := pointers.Resolve(t.Context(), store, c.session, c.pointer)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s of %s: %v, want %s", c.pointer, c.session, err, c.err)
			}
			continue
		}
		if diff := cmp.Diff(c.want, block); err != nil || event.Seq != c.seq || diff != "" {
			t.Errorf("%s is in event %d, %v\n%s", c.pointer, event.Seq, err, diff)
		}
	}
	_, _, err := pointers.Resolve(t.Context(), store, "s", "soup")
	if invalid, ok := errors.AsType[*eventlog.InvalidError](err); !ok || invalid.Field != "pointer" {
		t.Errorf("a text that is no pointer: %v", err)
	}
}

// A reader finds the tool of a result by its call, and omits pointers to nothing.
func TestReader(t *testing.T) {
	at := func(seq eventlog.Seq, block int) records.Pointer { return records.Pointer{Seq: seq, Block: block} }
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	r := pointers.NewReader(log(t), "s")
	want := []pointers.Facts{
		{Pointer: at(2, 0), Name: "ctx:2.0", ContentHash: hash("I look."), Chars: 7},
		{Pointer: at(3, 0), Name: "ctx:3.0", CallID: "c1", ToolName: "grep", ContentHash: hash("fünf"), Chars: 4},
	}
	for range 2 { // the second time from what it knows
		got, err := r.Read(t.Context(), []records.Pointer{at(1, 7), at(2, 0), at(3, 0)})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	if _, err := r.Read(t.Context(), []records.Pointer{at(9, 0)}); err == nil {
		t.Error("an event that is not there was read")
	}
}

// TestFactsOfTheNewestDecision: what is cached of a block is what the log says, not why the block was once replaced.
func TestFactsOfTheNewestDecision(t *testing.T) {
	events, err := reducetest.ParseEvents("user: Begin.\nassistant: call c1 grep {}\ntool: c1 found", 1)
	if err != nil {
		t.Fatal(err)
	}
	_, events, err = eventlog.Head{}.Admit(events)
	if err != nil {
		t.Fatal(err)
	}
	conv := reduce.NewConversation(reducetest.Gauge)
	for _, e := range events {
		conv.Append(e)
	}
	var described pointers.Described
	for _, p := range []records.Pointer{
		{Seq: 3, Kind: reduce.Clipped, Reducer: "clipping", Reason: "too large"},
		{Seq: 3, Kind: reduce.Stubbed, Reducer: "tool_results", Reason: "too old", Reclaimed: 7},
	} {
		got := described.Facts([]records.Pointer{p}, conv.Groups())
		if len(got) != 1 || got[0].Pointer != p || got[0].ToolName != "grep" || got[0].CallID != "c1" {
			t.Errorf("facts of %+v: %+v", p, got)
		}
	}
}

// countedReader counts the events that are read of a log.
type countedReader struct {
	eventlog.Reader
	events int
}

func (r *countedReader) Read(ctx context.Context, id string, from, to eventlog.Seq) iter.Seq2[eventlog.Event, error] {
	return func(yield func(eventlog.Event, error) bool) {
		for e, err := range r.Reader.Read(ctx, id, from, to) {
			r.events++
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestResultsFarFromTheirCalls: the tools of many results are found without reading the log for each of
// them. Each is that of the newest call with the id.
func TestResultsFarFromTheirCalls(t *testing.T) {
	const calls, between = 100, 2_000
	store := memlog.New()
	if _, err := store.CreateSession(t.Context(), eventlog.Session{ID: "s", CreateTime: time.Unix(1, 0)}); err != nil {
		t.Fatal(err)
	}
	var events []eventlog.Event
	add := func(role eventlog.Role, b eventlog.Block) {
		events = append(events, eventlog.Event{ID: fmt.Sprint(len(events)), Body: &eventlog.Message{Role: role, Blocks: []eventlog.Block{b}}})
	}
	for i := range calls {
		add(eventlog.RoleAssistant, eventlog.ToolCall{CallID: fmt.Sprint("c", i), Name: fmt.Sprint("tool", i), Arguments: `{}`})
	}
	for range between {
		add(eventlog.RoleUser, said)
	}
	add(eventlog.RoleAssistant, eventlog.ToolCall{CallID: "c7", Name: "newer", Arguments: `{}`})
	var all []records.Pointer
	for i := range calls {
		add(eventlog.RoleTool, eventlog.ToolResult{CallID: fmt.Sprint("c", i), Content: []eventlog.Block{said}})
		all = append(all, records.Pointer{Seq: eventlog.Seq(len(events))})
	}
	commit, err := store.Append(t.Context(), "s", eventlog.Batch{Time: time.Unix(2, 0), Events: events})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := commit.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := &countedReader{Reader: store}
	got, err := pointers.NewReader(log, "s").Read(t.Context(), all)
	if err != nil || len(got) != calls {
		t.Fatal(len(got), err)
	}
	for i, f := range got {
		if want := fmt.Sprint("tool", i); f.ToolName != want && (i != 7 || f.ToolName != "newer") {
			t.Errorf("result %d is of %s instead of %s", i, f.ToolName, want)
		}
	}
	if most := 2 * len(events); log.events > most {
		t.Errorf("%d events were read of a log of %d", log.events, len(events))
	}
}
