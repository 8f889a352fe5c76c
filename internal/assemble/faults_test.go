package assemble_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/records"
)

var errFault = errors.New("the disk is gone")

// faulty is a store with one method that fails. A method that yields items fails after some of them.
type faulty struct {
	eventlog.Store
	method string
}

func (f *faulty) Session(ctx context.Context, id string) (eventlog.Session, error) {
	if f.method == "Session" {
		return eventlog.Session{}, errFault
	}
	return f.Store.Session(ctx, id)
}

func (f *faulty) Read(ctx context.Context, id string, from, to eventlog.Seq) iter.Seq2[eventlog.Event, error] {
	if f.method != "Read" {
		return f.Store.Read(ctx, id, from, to)
	}
	return func(yield func(eventlog.Event, error) bool) {
		if from < to {
			for e, err := range f.Store.Read(ctx, id, from, (from+to)/2) {
				if !yield(e, err) {
					return
				}
			}
		}
		yield(eventlog.Event{}, errFault)
	}
}

func (f *faulty) Artifacts(ctx context.Context, id string, q eventlog.ArtifactQuery) iter.Seq2[eventlog.Artifact, error] {
	if f.method != "Artifacts" {
		return f.Store.Artifacts(ctx, id, q)
	}
	return func(yield func(eventlog.Artifact, error) bool) { yield(eventlog.Artifact{}, errFault) }
}

func (f *faulty) Artifact(ctx context.Context, id, kind string, seq eventlog.Seq, artifactID string) (eventlog.Artifact, error) {
	if f.method == "Artifact" {
		return eventlog.Artifact{}, errFault
	}
	return f.Store.Artifact(ctx, id, kind, seq, artifactID)
}

func (f *faulty) PutArtifacts(ctx context.Context, id string, all ...eventlog.Artifact) error {
	if f.method == "PutArtifacts" {
		return errFault
	}
	return f.Store.PutArtifacts(ctx, id, all...)
}

// longResult is a call whose result is clipped.
func longResult() []eventlog.Event {
	body := strings.Repeat("a line of the log\n", 2000)
	return []eventlog.Event{
		{ID: "long-call", Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{eventlog.ToolCall{CallID: "long", Name: "bash", Arguments: `{}`}}}},
		{ID: "long-result", Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{eventlog.ToolResult{CallID: "long", Content: []eventlog.Block{eventlog.Text{Text: body}}}}}},
	}
}

// TestStoreFaults: callers get the store's error, and once the store works again everything is as if it had
// never failed.
func TestStoreFaults(t *testing.T) {
	ctx := context.Background()
	keyed := request()
	keyed.IdempotencyKey = "key"
	calls := map[string]func(*assemble.Engine, eventlog.Store, *assemble.Context) error{
		"Assemble": func(e *assemble.Engine, _ eventlog.Store, _ *assemble.Context) error {
			_, err := e.Assemble(ctx, request())
			return err
		},
		"Assemble with a key": func(e *assemble.Engine, _ eventlog.Store, _ *assemble.Context) error {
			_, err := e.Assemble(ctx, keyed)
			return err
		},
		"Replay": func(e *assemble.Engine, _ eventlog.Store, c *assemble.Context) error {
			_, err := e.Replay(ctx, "s", c.Projection.ID)
			return err
		},
		"Pointers": func(_ *assemble.Engine, store eventlog.Store, c *assemble.Context) error {
			_, err := pointers.NewReader(store, "s").Read(ctx, c.Projection.Pointers)
			return err
		},
		"Resolve": func(_ *assemble.Engine, store eventlog.Store, _ *assemble.Context) error {
			_, _, err := pointers.Resolve(ctx, store, "s", "ctx:4.0")
			return err
		},
		"Projections": func(_ *assemble.Engine, store eventlog.Store, _ *assemble.Context) error {
			_, err := logtest.Collect(records.After(ctx, store, "s", ""))
			return err
		},
	}
	// needs says which methods of the store each call cannot do without.
	needs := map[string]string{
		"Assemble":            "Session Read Artifacts Artifact PutArtifacts",
		"Assemble with a key": "Session Read Artifacts Artifact",
		"Replay":              "Session Read Artifact",
		"Pointers":            "Session Read",
		"Resolve":             "Session Read",
		"Projections":         "Artifacts",
	}
	for name, call := range calls {
		for _, method := range []string{"Session", "Read", "Artifacts", "Artifact", "PutArtifacts"} {
			t.Run(name+"/"+method, func(t *testing.T) {
				store := &faulty{Store: memlog.New()}
				defer closeStore(t, store)
				push(t, store, "s", opening()...)
				for i := range 30 {
					push(t, store, "s", turn(i)...)
				}
				push(t, store, "s", longResult()...)
				made := mustAssemble(t, newEngine(t, store), keyed)
				if len(made.Pointers) == 0 {
					t.Fatal("nothing was clipped")
				}
				engine := newEngine(t, store)
				store.method = method
				err := call(engine, store, made)
				if strings.Contains(" "+needs[name]+" ", " "+method+" ") {
					if !errors.Is(err, errFault) {
						t.Errorf("error is %v, want the store's", err)
					}
				} else if err != nil {
					t.Errorf("failed by a method that it does not need: %v", err)
				}
				store.method = ""
				if got := mustAssemble(t, engine, request()); got.PrefixHash != made.PrefixHash || got.Cache.StableMessages != made.MessageCount {
					t.Errorf("afterwards %d of %d messages are stable, and the hash is %s, not %s", got.Cache.StableMessages, made.MessageCount, got.PrefixHash, made.PrefixHash)
				}
			})
		}
	}
}

// TestEstimateFaults: an estimate fails while the store fails, and works again afterwards.
func TestEstimateFaults(t *testing.T) {
	store := &faulty{Store: memlog.New()}
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	mustAssemble(t, engine, request())
	push(t, store, "s", turn(1)...)
	for _, method := range []string{"Session", "Read"} {
		store.method = method
		if _, _, err := engine.Estimate(context.Background(), "s", 0, nil); !errors.Is(err, errFault) {
			t.Errorf("%s: error is %v", method, err)
		}
	}
	store.method = ""
	got, ok, err := engine.Estimate(context.Background(), "s", 0, nil)
	if next := mustAssemble(t, engine, request()); err != nil || !ok || got.Projected != next.Budget.Projected {
		t.Errorf("estimated %+v, %v, %v; assembled %+v", got, ok, err, next.Budget)
	}
}

// TestEstimateReadsNothingAtHand: an estimate that is given the newest events asks the store for nothing,
// and gives the same answer as one that reads them.
func TestEstimateReadsNothingAtHand(t *testing.T) {
	ctx := context.Background()
	store := &faulty{Store: memlog.New()}
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	made := mustAssemble(t, engine, request())
	push(t, store, "s", turn(1)...)
	session, err := store.Session(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	var appended []eventlog.Event
	for e, err := range store.Read(ctx, "s", made.AsOf+1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		appended = append(appended, e)
	}
	for _, method := range []string{"Session", "Read"} {
		store.method = method
		if _, ok, err := engine.Estimate(ctx, "s", session.Incarnation, appended); !ok || err != nil {
			t.Errorf("%s was asked for: %v, %v", method, ok, err)
		}
		if _, _, err := engine.Estimate(ctx, "s", session.Incarnation+1, appended); method == "Session" && !errors.Is(err, errFault) {
			t.Errorf("events of another session were taken: %v", err)
		}
	}
	got, _, _ := engine.Estimate(ctx, "s", session.Incarnation, appended)
	store.method = ""
	fresh := newEngine(t, store)
	if next := mustAssemble(t, fresh, request()); got.Projected != next.Budget.Projected || got.Raw != next.Budget.Raw {
		t.Errorf("estimated %+v; assembled %+v", got, next.Budget)
	}
}

// TestRecordsThatCannotBeRead: unreadable records are reported as errors, not treated as missing.
func TestRecordsThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct{ value, want string }{
		"no message":        {"nonsense", "projection p1-0001 is corrupt"},
		"a later version's": {"\x08\x63", "projection p1-0001 has version 99 and this contextd reads up to 1"},
	} {
		t.Run(name, func(t *testing.T) {
			store := memlog.New()
			defer closeStore(t, store)
			engine := newEngine(t, store)
			push(t, store, "s", opening()...)
			if err := store.PutArtifacts(context.Background(), "s", eventlog.Artifact{Kind: "projection", Seq: 1, ID: "p1-0001", Value: []byte(c.value)}); err != nil {
				t.Fatal(err)
			}
			_, assembled := engine.Assemble(context.Background(), request())
			_, listed := logtest.Collect(records.After(context.Background(), store, "s", ""))
			_, replayed := engine.Replay(context.Background(), "s", "p1-0001")
			for _, err := range []error{assembled, listed, replayed} {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error is %v, want that it %s", err, c.want)
				}
			}
		})
	}
}
