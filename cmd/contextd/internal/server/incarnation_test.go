package server_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/gauges"
	"github.com/contextd/contextd/cmd/contextd/internal/server"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// scrubbingStore deletes at once and goes on until the test ends it, as a disk does that
// removes what was deleted.
type scrubbingStore struct {
	eventlog.Store
	freed chan string
	end   chan error
}

func newScrubbingStore(store eventlog.Store) *scrubbingStore {
	return &scrubbingStore{Store: store, freed: make(chan string), end: make(chan error)}
}

func (s *scrubbingStore) DeleteSession(ctx context.Context, id string, of eventlog.Incarnation, head *eventlog.Seq) error {
	if err := s.Store.DeleteSession(ctx, id, of, head); err != nil {
		return err
	}
	s.freed <- id
	return <-s.end
}

// deleting begins to delete a session and returns when its id is free; ended yields what
// the call came to.
func (a *api) deleting(t *testing.T, store *scrubbingStore, id string) (ended <-chan error) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := a.DeleteSession(context.Background(), &contextdv1.DeleteSessionRequest{SessionId: id})
		done <- err
	}()
	<-store.freed
	return done
}

// TestIDsAreFreeWhileDataIsRemoved: as soon as a session is gone an append makes a new
// one, and the old one is in nobody's way, whatever comes of the removal.
func TestIDsAreFreeWhileDataIsRemoved(t *testing.T) {
	for name, outcome := range map[string]error{"removed": nil, "not removed": errors.New("input/output error")} {
		t.Run(name, func(t *testing.T) {
			store := newScrubbingStore(stores["memory"](t))
			a := serve(t, store, func(o *server.Options) { o.Limits.MaxSessions = 1 })
			a.append(t, "s", conversation()...)
			if _, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s"}); err != nil {
				t.Fatal(err)
			}
			ended := a.deleting(t, store, "s")
			if got := a.append(t, "s", user("new")); got.GetFirstSeq() != 1 || got.GetBudget() != nil {
				t.Errorf("the first append says %v", got)
			}
			checkRefusal(t, create("other")(t, a), badInput{code: codes.ResourceExhausted, reason: apierr.ReasonLimit, field: "session_id"})
			store.end <- outcome
			if err := <-ended; (err == nil) != (outcome == nil) {
				t.Errorf("the deletion came to %v", err)
			}
			checkRefusal(t, create("other")(t, a), badInput{code: codes.ResourceExhausted, reason: apierr.ReasonLimit, field: "session_id"})
			if got := seqsOf(a.read(t, "s")); got != "1" {
				t.Errorf("the new session holds %s", got)
			}
			ended = a.deleting(t, store, "s")
			store.end <- nil
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if err := create("other")(t, a); err != nil {
				t.Errorf("with nobody there: %v", err)
			}
		})
	}
}

// TestFirstAppendsAreOneSession: appends that make a session at once take one place.
func TestFirstAppendsAreOneSession(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t), func(o *server.Options) { o.Limits.MaxSessions = 2 })
		errs := make(chan error)
		const clients = 8
		for i := range clients {
			go func() {
				_, err := a.AppendEvents(context.Background(), &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{user(fmt.Sprint(i))}})
				errs <- err
			}()
		}
		for range clients {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if err := create("second")(t, a); err != nil {
			t.Errorf("with a place free: %v", err)
		}
	})
}

// TestStoredIsAcknowledged: once the events are stored nothing fails the call, which a
// client without event ids could not repeat.
func TestStoredIsAcknowledged(t *testing.T) {
	var broken atomic.Bool
	a := serve(t, stores["memory"](t), func(o *server.Options) {
		o.Engine = assemble.New(o.Store, assemble.Options{Models: o.Models, Clock: o.Clock, Gauges: func(tokenizer string) (budget.Gauge, error) {
			if broken.Load() {
				panic("no estimate")
			}
			return gauges.Open(tokenizer)
		}})
	})
	a.append(t, "s", user("w"))
	if _, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s"}); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	if got := a.append(t, "s", user("x")); got.GetLastSeq() != 2 || got.GetBudget() != nil {
		t.Errorf("acknowledged was %v", got)
	}
	stream := a.stream(t)
	if err := stream.Send(&contextdv1.AppendEventStreamRequest{Append: &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{user("y")}}}); err != nil {
		t.Fatal(err)
	}
	if got, err := stream.Recv(); err != nil || got.GetAppended().GetLastSeq() != 3 {
		t.Errorf("acknowledged was %v, %v", got, err)
	}
}

// swappingStore replaces a session by another between two looks at it.
type swappingStore struct {
	eventlog.Store
	// after is how many calls that read go to the old session.
	after int
	swap  func()
}

func (s *swappingStore) Session(ctx context.Context, id string) (eventlog.Session, error) {
	if s.after--; s.after == 0 {
		s.swap()
	}
	return s.Store.Session(ctx, id)
}

// TestNoMixtures: a session that is replaced by one of its name in the middle of a call
// gives an answer of the old one, of the new one, or none; nothing panics, and nothing
// derived from the old one is kept next to the new one.
func TestNoMixtures(t *testing.T) {
	ctx := context.Background()
	budgetOf := &contextdv1.Budget{MaxTokens: 9000, SafetyMargin: proto.Float64(0)}
	calls := map[string]func(t *testing.T, a *api) error{
		"assemble": func(t *testing.T, a *api) error {
			got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: budgetOf})
			if n := len(got.messages); err == nil && n != 1 && n != 4 {
				t.Errorf("%d messages of 4 or 1", n)
			}
			return err
		},
		"preview": func(t *testing.T, a *api) error {
			got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Preview: true})
			if n := len(got.messages); err == nil && n != 1 && n != 4 {
				t.Errorf("%d messages of 4 or 1", n)
			}
			return err
		},
		"export": func(t *testing.T, a *api) error {
			_, _, err := a.export(t, &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: "claude-code", AsCompacted: true, Budget: &contextdv1.Budget{MaxTokens: 300, SafetyMargin: proto.Float64(0)}})
			return err
		},
		"append": func(t *testing.T, a *api) error {
			_, err := a.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{user("more")}})
			return err
		},
		"record": func(_ *testing.T, a *api) error {
			_, err := a.RecordModelCall(ctx, &contextdv1.RecordModelCallRequest{SessionId: "s", ProjectionId: "p4-0001", InputTokens: 10})
			return err
		},
		"replay": func(_ *testing.T, a *api) error {
			_, err := a.ReplayProjection(ctx, &contextdv1.ReplayProjectionRequest{SessionId: "s", ProjectionId: "p4-0001"})
			return err
		},
		"explain": func(_ *testing.T, a *api) error {
			_, err := a.ExplainCall(ctx, &contextdv1.ExplainCallRequest{SessionId: "s", Text: "files"})
			return err
		},
		"projections": func(_ *testing.T, a *api) error {
			_, err := a.ListProjections(ctx, &contextdv1.ListProjectionsRequest{SessionId: "s"})
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			for after := 1; ; after++ {
				store := &swappingStore{Store: stores["memory"](t)}
				a := serve(t, store)
				a.append(t, "s", conversation()...)
				got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: budgetOf})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := a.RecordModelCall(ctx, &contextdv1.RecordModelCallRequest{SessionId: "s", ProjectionId: got.header.GetProjectionId(), InputTokens: 100}); err != nil {
					t.Fatal(err)
				}
				store.after = after
				store.swap = func() {
					if err := store.DeleteSession(ctx, "s", 0, nil); err != nil {
						t.Error(err)
					}
					commit, err := store.Append(ctx, "s", eventlog.Batch{Events: []eventlog.Event{{ID: "new", Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: "x"}}}}}, Time: epoch})
					if err == nil {
						_, err = commit.Wait(ctx)
					}
					if err != nil {
						t.Error(err)
					}
				}
				if err := call(t, a); err != nil && status.Code(err) != codes.NotFound && status.Code(err) != codes.FailedPrecondition {
					t.Errorf("replaced at look %d: %v", after, err)
				}
				if store.after > 0 {
					return // it never looked so often
				}
				for _, kind := range []string{"projection", "call"} {
					for x, err := range store.Artifacts(ctx, "s", eventlog.ArtifactQuery{Kind: kind}) {
						if err != nil {
							t.Fatal(err)
						}
						if x.Seq > 2 {
							t.Errorf("replaced at look %d: %s %s of the old session is beside the new one", after, kind, x.ID)
						}
					}
				}
			}
		})
	}
}
