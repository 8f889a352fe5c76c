package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/server"
	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/policy"
	"github.com/contextd/contextd/internal/records"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// shadowLog has what came of shadows, and counts nothing else.
type shadowLog struct {
	mu  sync.Mutex
	all []server.Shadowed
}

func (*shadowLog) Appended(context.Context, time.Duration, int, uint64)               {}
func (*shadowLog) Assembling(context.Context, string)                                 {}
func (*shadowLog) Assembled(context.Context, time.Duration, *assemble.Context, error) {}
func (*shadowLog) Recorded(context.Context, records.Call)                             {}

func (l *shadowLog) Shadowed(_ context.Context, s server.Shadowed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Took = 0
	l.all = append(l.all, s)
}

// heldShadows is a store in which shadows are stored when they are let, and fail where fails is set.
type heldShadows struct {
	eventlog.Store
	let   chan struct{}
	fails error
}

func (s heldShadows) PutArtifacts(ctx context.Context, id string, all ...eventlog.Artifact) error {
	if len(all) == 0 || !strings.HasPrefix(all[len(all)-1].Kind, "shadow") {
		return s.Store.PutArtifacts(ctx, id, all...)
	}
	<-s.let
	if s.fails != nil {
		return s.fails
	}
	return s.Store.PutArtifacts(ctx, id, all...)
}

func withShadow(t *testing.T, name string, meter *shadowLog) option {
	t.Helper()
	set, err := policy.Set{}.WithShadow(name)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *server.Options) {
		o.Policies = set
		o.Meter = meter
	}
}

// TestNoAnswerWaitsForAShadow: contexts are answered while no shadow can be stored, those that are
// too many are skipped and counted, and the rest are computed before the server ends.
func TestNoAnswerWaitsForAShadow(t *testing.T) {
	meter := &shadowLog{}
	store := heldShadows{Store: memlog.New(), let: make(chan struct{})}
	a := serve(t, store, withShadow(t, policy.FrugalName, meter))
	const contexts = 80
	for i := range contexts {
		if _, err := a.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{user(fmt.Sprint(i))}}); err != nil {
			t.Fatal(err)
		}
		got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s"})
		if err != nil || got.header.GetProjection().GetShadow() != nil {
			t.Fatalf("%v, %v", got.header.GetProjection().GetShadow(), err)
		}
	}
	close(store.let)
	a.server.StopShadows(t.Context())
	computed, skipped := 0, 0
	for _, s := range meter.all {
		switch {
		case errors.Is(s.Err, server.ErrShadowsWait):
			skipped++
		case s.Err != nil:
			t.Error(s.Err)
		default:
			computed++
			if s.Policy != policy.FrugalName || s.Tokens == 0 || s.UsedTokens == 0 {
				t.Errorf("%+v", s)
			}
		}
	}
	if computed < 64 || skipped == 0 || computed+skipped != contexts {
		t.Errorf("%d were computed and %d skipped of %d", computed, skipped, contexts)
	}
	all, err := a.ListProjections(t.Context(), &contextdv1.ListProjectionsRequest{SessionId: "s", Brief: true, PageSize: 100})
	if err != nil || len(all.GetProjections()) != contexts {
		t.Fatalf("%d, %v", len(all.GetProjections()), err)
	}
	shown := 0
	for _, p := range all.GetProjections() {
		if s := p.GetShadow(); s != nil {
			shown++
			if s.GetTokens() != p.GetBudget().GetProjectedTokens() { // so short a log is left as it is
				t.Errorf("%v beside %v", s, p.GetBudget())
			}
		}
	}
	if shown != computed {
		t.Errorf("%d of %d are in the record", shown, computed)
	}
}

// TestShadowsInRecords: a shadow is in every answer about its record, once for a call that is repeated,
// and not for a preview, an earlier event or the policy in use; one that fails changes no answer.
func TestShadowsInRecords(t *testing.T) {
	meter := &shadowLog{}
	store := heldShadows{Store: memlog.New(), let: make(chan struct{})}
	close(store.let)
	a := serve(t, store, withShadow(t, policy.FrugalName, meter))
	if _, err := a.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: "s", Events: conversation()}); err != nil {
		t.Fatal(err)
	}
	for _, req := range []*contextdv1.AssembleContextRequest{
		{SessionId: "s", IdempotencyKey: "a"}, {SessionId: "s", IdempotencyKey: "a"}, {SessionId: "s", Preview: true},
		{SessionId: "s", AsOfSeq: proto.Uint64(2)}, {SessionId: "s", Policy: &contextdv1.Policy{Name: policy.FrugalName}},
	} {
		if _, err := a.assemble(t, req); err != nil {
			t.Fatal(err)
		}
	}
	a.server.StopShadows(t.Context())
	if len(meter.all) != 2 || meter.all[0].Err != nil || !errors.Is(meter.all[1].Err, assemble.ErrShadowInUse) {
		t.Errorf("%+v", meter.all)
	}
	var want *contextdv1.ShadowProjection
	for _, p := range listAll(t, a) {
		if (p.GetShadow() != nil) != (p.GetProjectionId() == "p4-0001") {
			t.Errorf("%s has the shadow %v", p.GetProjectionId(), p.GetShadow())
		} else if p.GetShadow() != nil {
			want = p.GetShadow()
		}
	}
	replayed, err := a.ReplayProjection(t.Context(), &contextdv1.ReplayProjectionRequest{SessionId: "s", ProjectionId: "p4-0001"})
	if err != nil || !proto.Equal(replayed.GetRecorded().GetShadow(), want) {
		t.Errorf("%v of %v, %v", replayed.GetRecorded().GetShadow(), want, err)
	}
	explained, err := a.ExplainCall(t.Context(), &contextdv1.ExplainCallRequest{SessionId: "s", ProjectionId: "p4-0001"})
	if err != nil || !proto.Equal(explained.GetProjection().GetShadow(), want) {
		t.Errorf("%v of %v, %v", explained.GetProjection().GetShadow(), want, err)
	}
}

func TestAShadowThatFails(t *testing.T) {
	meter, broken := &shadowLog{}, errors.New("the disk is on fire")
	store := heldShadows{Store: memlog.New(), let: make(chan struct{}), fails: broken}
	close(store.let)
	a := serve(t, store, withShadow(t, policy.FrugalName, meter))
	if _, err := a.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: "s", Events: conversation()}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s"}); err != nil {
		t.Error(err)
	}
	a.server.StopShadows(t.Context())
	if len(meter.all) != 1 || !errors.Is(meter.all[0].Err, broken) {
		t.Errorf("%+v", meter.all)
	}
	if p := listAll(t, a); len(p) != 1 || p[0].GetShadow() != nil {
		t.Errorf("%v", p)
	}
}

func listAll(t *testing.T, a *api) []*contextdv1.Projection {
	t.Helper()
	listed, err := a.ListProjections(t.Context(), &contextdv1.ListProjectionsRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	return listed.GetProjections()
}
