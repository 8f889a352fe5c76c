package logtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Opener makes an empty store. The suite closes it.
type Opener func(t testing.TB) eventlog.Store

// Option changes what Run tests of a store.
type Option func(*options)

type options struct {
	reopen func(testing.TB, eventlog.Store) eventlog.Store
	holds  func(tb testing.TB, s eventlog.Store, text string) bool
}

// Durable says that the store's data outlive its process. reopen closes a store and opens it again with its data.
func Durable(reopen func(testing.TB, eventlog.Store) eventlog.Store) Option {
	return func(o *options) { o.reopen = reopen }
}

// Medium sets a function that searches the store's medium for a text, without the store itself.
func Medium(holds func(tb testing.TB, s eventlog.Store, text string) bool) Option {
	return func(o *options) { o.holds = holds }
}

// Run tests a store against the contract of eventlog.Store. If a case needs a capability that the store does not
// state, the case must fail, so that the statement stays true: if it passes, the test fails, otherwise the case is
// skipped with the capability's name.
func Run(t *testing.T, open Opener, opts ...Option) {
	t.Helper()
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	groups := []struct {
		name  string
		cases []testCase
	}{
		{"sessions", sessionCases},
		{"append", appendCases},
		{"idempotency", idempotencyCases},
		{"read", readCases},
		{"fork", forkCases},
		{"chain", chainCases},
		{"delete", deleteCases},
		{"artifacts", artifactCases},
		{"leases", leaseCases},
		{"wait", waitCases},
		{"concurrency", concurrencyCases},
		{"linearizable", linearizableCases},
		{"lifecycle", lifecycleCases},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) { c.hold(t, open, o) })
			}
		})
	}
}

// testCase is one sentence of the contract.
type testCase struct {
	name string
	run  func(h *harness)
	// closes is set if the case closes the store itself.
	closes bool
	// durable is set if the case needs a store that can be reopened, and medium if it searches the store's medium.
	durable, medium bool
	// needs is the capability without which the case fails; nil if it needs none.
	needs *capability
}

// capability is one of eventlog.Capabilities.
type capability struct {
	name   string
	stated func(eventlog.Capabilities) bool
}

var (
	needsChain   = &capability{"Chain", func(c eventlog.Capabilities) bool { return c.Chain }}
	needsErasure = &capability{"Erases", func(c eventlog.Capabilities) bool { return c.Erases }}
	needsOne     = &capability{"OneWriter", func(c eventlog.Capabilities) bool { return c.OneWriter }}
)

// hold runs the case on a new store.
func (c testCase) hold(t testing.TB, open Opener, o options) {
	t.Helper()
	switch {
	case c.durable && o.reopen == nil:
		t.Skip("SKIPPED: Run was given no way to reopen the store: it is not durable")
	case c.medium && o.holds == nil:
		t.Skip("SKIPPED: Run was given no medium to search for what was deleted")
	}
	h := &harness{TB: t, s: open(t), o: o, closes: !c.closes}
	if c.needs != needsOne {
		h.s = calm(h.s)
	}
	if c.needs == nil || c.needs.stated(h.s.Capabilities()) {
		defer h.close()
		c.run(h)
		return
	}
	if h.refutes(c) {
		t.Skipf("SKIPPED: the store does not state the capability %s, and the case fails as expected", c.needs.name)
	}
	t.Errorf("the case passes, although the store does not state %s", c.needs.name)
}

// trial is a testing.TB whose failure does not fail the test.
type trial struct {
	testing.TB
	failed atomic.Bool
}

func (t *trial) Helper()               {}
func (t *trial) Fail()                 { t.failed.Store(true) }
func (t *trial) Error(...any)          { t.Fail() }
func (t *trial) Errorf(string, ...any) { t.Fail() }
func (t *trial) FailNow()              { t.Fail(); runtime.Goexit() }
func (t *trial) Fatal(...any)          { t.FailNow() }
func (t *trial) Fatalf(string, ...any) { t.FailNow() }

// refutes reports whether the case fails.
func (h *harness) refutes(c testCase) bool {
	t := &trial{TB: h.TB}
	h.TB = t
	done := make(chan struct{})
	go func() { // which Goexit ends
		defer close(done)
		defer h.close()
		c.run(h)
	}()
	<-done
	return t.failed.Load()
}

// harness is a store under test, with helpers that fail the test at the first unexpected result.
type harness struct {
	testing.TB
	s      eventlog.Store
	o      options
	closes bool
}

func (h *harness) close() {
	if h.closes {
		h.ok(h.s.Close())
	}
}

// reopen goes on with the store as a restart finds it.
func (h *harness) reopen() { h.s = calm(h.o.reopen(h.TB, bare(h.s))) }

// calm wraps a store so that a write is repeated if another writer came first.
func calm(s eventlog.Store) eventlog.Store {
	if s.Capabilities().OneWriter {
		return s
	}
	return patient{s}
}

// bare unwraps the store that was opened.
func bare(s eventlog.Store) eventlog.Store {
	if p, ok := s.(patient); ok {
		return p.Store
	}
	return s
}

// epoch is the time in all tests.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)

func (h *harness) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatalf("unexpected error: %v", err)
	}
}

// same fails unless got is equal to want. Empty and absent are equal.
func (h *harness) same(what string, got, want any) {
	h.Helper()
	if diff := Diff(want, got); diff != "" {
		h.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// Diff compares values of the event log. Empty and absent are equal. The chain and the incarnation do not count,
// because every store has its own.
func Diff(want, got any) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(eventlog.Session{}, "ChainHead", "Incarnation"), cmpopts.IgnoreFields(eventlog.Receipt{}, "Turn"))
}

// fails fails unless the error has the type and the text of want.
func (h *harness) fails(got, want error) {
	h.Helper()
	if got == nil || reflect.TypeOf(got) != reflect.TypeOf(want) || got.Error() != want.Error() {
		h.Fatalf("got error %T %q, want %T %q", got, fmt.Sprint(got), want, want)
	}
}

// failsOn fails unless the error is an *InvalidError for this field.
func (h *harness) failsOn(got error, field string) {
	h.Helper()
	var invalid *eventlog.InvalidError
	if !errors.As(got, &invalid) || invalid.Field != field {
		h.Fatalf("got error %v, want an invalid %s", got, field)
	}
}

// append appends a batch and waits for it.
func (h *harness) append(id string, events ...eventlog.Event) []eventlog.Receipt {
	h.Helper()
	receipts, err := h.tryAppend(id, eventlog.Batch{Events: events, Time: epoch})
	h.ok(err)
	return receipts
}

func (h *harness) tryAppend(id string, b eventlog.Batch) ([]eventlog.Receipt, error) {
	return appendAndWait(h.Context(), h.s, id, b)
}

func appendAndWait(ctx context.Context, s eventlog.Store, id string, b eventlog.Batch) ([]eventlog.Receipt, error) {
	c, err := s.Append(ctx, id, b)
	if err != nil {
		return nil, err
	}
	return c.Wait(ctx)
}

// fill appends n small messages, one per batch, named e1, e2, ….
func (h *harness) fill(id string, n int) {
	h.Helper()
	for i := range n {
		h.append(id, Say(fmt.Sprintf("e%d", i+1)))
	}
}

func (h *harness) session(id string) eventlog.Session {
	h.Helper()
	s, err := h.s.Session(h.Context(), id)
	h.ok(err)
	return s
}

func (h *harness) read(id string, from, to eventlog.Seq) []eventlog.Event {
	h.Helper()
	events, err := Collect(h.s.Read(h.Context(), id, from, to))
	h.ok(err)
	return events
}

// ids returns the event_ids of from..to.
func (h *harness) ids(id string, from, to eventlog.Seq) []string {
	h.Helper()
	var ids []string
	for i, e := range h.read(id, from, to) {
		if want := max(from, 1) + eventlog.Seq(i); e.Seq != want {
			h.Fatalf("event %d of the range has seq %d, want %d", i, e.Seq, want)
		}
		ids = append(ids, e.ID)
	}
	return ids
}

func (h *harness) fork(parent string, at eventlog.Seq, id string) eventlog.Session {
	h.Helper()
	s, err := h.s.Fork(h.Context(), eventlog.ForkRequest{ParentID: parent, At: at, NewID: id, Time: epoch.Add(time.Hour)})
	h.ok(err)
	return s
}

// Collect returns the values of a sequence up to its first error.
func Collect[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for v, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}
