package assemble_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
)

// unindexed stores records and calls without their index entries, as early builds did.
type unindexed struct{ eventlog.Store }

func (s unindexed) PutArtifacts(ctx context.Context, id string, all ...eventlog.Artifact) error {
	return s.Store.PutArtifacts(ctx, id, slices.DeleteFunc(all, func(a eventlog.Artifact) bool { return strings.Contains(a.Kind, "/") })...)
}

// lookups runs random sessions and compares every lookup with a scan of all records.
type lookups struct {
	*rapid.T
	fs     vfs.FS
	store  eventlog.Store
	engine *assemble.Engine
	old    bool // the engine keeps nothing that records are found by
	ids    []string
	events int
	first  map[string]assemble.CacheReport // by session and record
}

func (l *lookups) open() {
	store, err := disklog.Open("log", disklog.Options{FS: l.fs})
	if err != nil {
		l.Fatal(err)
	}
	l.store = store
	l.start()
}

func (l *lookups) start() {
	l.engine = newEngine(l, l.store)
	if l.old {
		l.engine = newEngine(l, unindexed{l.store})
	}
}

func (l *lookups) check(err error) {
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lookups) grow(id string) {
	for range rapid.IntRange(1, 6).Draw(l.T, "turns") {
		l.events++
		push(l, l.store, id, turn(l.events)...)
	}
}

// records are all there are, newest first.
func (l *lookups) records(id string) []records.Projection {
	all, err := logtest.Collect(records.After(context.Background(), l.store, id, ""))
	l.check(err)
	slices.Reverse(all)
	return all
}

func (l *lookups) head(id string) eventlog.Seq {
	info, err := l.store.Session(context.Background(), id)
	l.check(err)
	return info.Head
}

func (l *lookups) assemble(id string) {
	req := request()
	req.SessionID = id
	req.Budget.MaxTokens = rapid.SampledFrom([]uint64{5000, 6000}).Draw(l.T, "max_tokens")
	req.Budget.Format = rapid.SampledFrom([]string{"", "anthropic"}).Draw(l.T, "format")
	req.Preview = rapid.IntRange(0, 4).Draw(l.T, "preview") == 0
	if !l.old {
		req.IdempotencyKey = rapid.SampledFrom([]string{"", "", "one", "two"}).Draw(l.T, "key")
		if rapid.IntRange(0, 3).Draw(l.T, "past") == 0 {
			at := eventlog.Seq(rapid.Uint64Range(0, uint64(l.head(id))).Draw(l.T, "as_of"))
			req.AsOf = &at
		}
	}
	before := l.records(id)
	got, err := l.engine.Assemble(context.Background(), req)
	if over, ok := errors.AsType[*reduce.OverBudgetError](err); ok {
		l.Log(over)
		return
	}
	l.check(err)
	if l.old {
		return
	}
	r := got.Projection
	if req.IdempotencyKey != "" {
		at := slices.IndexFunc(before, func(b records.Projection) bool { return b.IdempotencyKey == req.IdempotencyKey })
		if at >= 0 {
			if r.ID != before[at].ID {
				l.Fatalf("key %s gives %s, not %s", req.IdempotencyKey, r.ID, before[at].ID)
			}
			if first, ok := l.first[id+r.ID]; ok && first != got.Cache {
				l.Fatalf("%s is compared as %+v, at first %+v", r.ID, got.Cache, first)
			}
			return
		}
	}
	if slices.ContainsFunc(before, func(b records.Projection) bool { return b.ID == r.ID }) {
		l.Fatalf("%s was recorded before", r.ID)
	}
	if r.ID != "" {
		l.first[id+r.ID] = got.Cache
	}
	l.sameAsScan(id, before, r)
	facts, err := pointers.NewReader(l.store, id).Read(context.Background(), r.Pointers)
	if diff := cmp.Diff(got.Pointers, facts, cmpopts.EquateEmpty()); err != nil || diff != "" {
		l.Fatalf("%s has other pointers than its context (%v):\n%s", r.ID, err, diff)
	}
}

// sameAsScan compares a record's starting state and its Previous with what a scan of the records before it
// finds.
func (l *lookups) sameAsScan(id string, before []records.Projection, r records.Projection) {
	gauge, err := gauges(r.Budget.Tokenizer)
	l.check(err)
	conv := reduce.NewConversation(gauge)
	if r.AsOf > 0 {
		for event, err := range l.store.Read(context.Background(), id, 1, r.AsOf) {
			l.check(err)
			conv.Append(event)
		}
	}
	newest := func(match func(records.Projection) bool) (found records.Projection) {
		at := slices.IndexFunc(before, func(b records.Projection) bool { return r.AsOf > 0 && b.AsOf <= r.AsOf && match(b) })
		if at >= 0 {
			found = before[at]
		}
		return found
	}
	state := newest(func(b records.Projection) bool {
		return b.Fingerprint == r.Fingerprint && conv.VoidSince(b.AsOf) == 0
	})
	if diff := cmp.Diff(state.After, r.Before, cmpopts.EquateEmpty()) + cmp.Diff(state.ShownAfter, r.ShownBefore, cmpopts.EquateEmpty()); diff != "" {
		l.Fatalf("%s at %d starts from other decisions than those of %q:\n%s", r.ID, r.AsOf, state.ID, diff)
	}
	if last := newest(func(b records.Projection) bool { return b.Stream() == r.Stream() }); last.ID != r.Previous {
		l.Fatalf("%s at %d is compared with %q, not %q", r.ID, r.AsOf, r.Previous, last.ID)
	}
}

func (l *lookups) call(id string) {
	all := l.records(id)
	if len(all) == 0 {
		return
	}
	r := all[rapid.IntRange(0, len(all)-1).Draw(l.T, "record")]
	model := rapid.SampledFrom([]string{"", "a", "b"}).Draw(l.T, "model")
	projection := rapid.SampledFrom([]string{r.ID, ""}).Draw(l.T, "projection")
	_, _, err := l.engine.RecordCall(context.Background(), records.Call{SessionID: id, ProjectionID: projection, Model: model, InputTokens: 1000 + uint64(l.events)})
	l.check(err)
	if l.old {
		return
	}
	calls, _, err := records.CallsAfter(context.Background(), l.store, id, 0, math.MaxInt)
	l.check(err)
	for number, want := range append([]records.ModelCall{calls[len(calls)-1]}, calls...) {
		if got, err := records.GetCall(context.Background(), l.store, id, uint32(number)); err != nil || got != want {
			l.Fatalf("call %d is %+v (%v), not %+v", number, got, err, want)
		}
	}
	if got, err := records.GetCall(context.Background(), l.store, id, uint32(len(calls))+1); !errors.As(err, new(*eventlog.NotFoundError)) {
		l.Fatalf("a call that was not made is %+v, %v", got, err)
	}
	for _, model := range []string{"", "a", "b"} {
		var want budget.Calibration
		for _, c := range slices.Backward(calls) {
			if c.Tokenizer == r.Budget.Tokenizer && (c.Model == model || c.BudgetModel == model) {
				want = c.Calibration
				break
			}
		}
		got, _, err := records.Calibration(context.Background(), l.store, id, l.head(id), budget.Budget{Model: model, Tokenizer: r.Budget.Tokenizer})
		if err != nil || got != want {
			l.Fatalf("model %q is calibrated by %+v (%v), not %+v", model, got, err, want)
		}
	}
}

func (l *lookups) compact(id string) {
	c := assemble.Compaction{SessionID: id, Request: request(), Strategy: reduce.Drop, KeepLastTurns: 1}
	_, _, err := l.engine.Compact(context.Background(), c, nil, marking(l, l.store, id))
	l.check(err)
}

func (l *lookups) undo(id string) {
	_, err := l.engine.Undo(context.Background(), id, 0, func(ctx context.Context, c *eventlog.Compaction) error {
		_, err := mark(ctx, l, l.store, id, c)
		return err
	})
	l.check(err)
}

func (l *lookups) fork(id string) {
	at := eventlog.Seq(rapid.Uint64Range(0, uint64(l.head(id))).Draw(l.T, "at"))
	child := fmt.Sprint("fork", len(l.ids))
	_, err := l.store.Fork(context.Background(), eventlog.ForkRequest{ParentID: id, At: at, NewID: child, Time: epoch()})
	l.check(err)
	l.ids = append(l.ids, child)
}

// TestLookupsAgreeWithScans also has an early build, which stores no index entries, write from time to
// time.
func TestLookupsAgreeWithScans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &lookups{T: t, fs: vfs.NewMem(), ids: []string{"s"}, first: map[string]assemble.CacheReport{}}
		l.open()
		defer func() { l.check(l.store.Close()) }()
		push(t, l.store, "s", opening()...)
		l.grow("s")
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			id := rapid.SampledFrom(l.ids).Draw(t, "session")
			switch step := rapid.IntRange(0, 19).Draw(t, "step"); {
			case step < 4:
				l.grow(id)
			case step < 12:
				l.assemble(id)
			case step < 14:
				l.call(id)
			case step == 14:
				l.compact(id)
			case step < 17:
				l.undo(id)
			case step == 17:
				l.fork(id)
			case step == 18:
				l.check(l.store.Close())
				l.open()
			default:
				l.old = rapid.IntRange(0, 2).Draw(t, "old") == 0
				l.start()
			}
		}
	})
}
