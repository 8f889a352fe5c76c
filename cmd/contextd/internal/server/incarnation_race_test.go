package server_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// span is when a call ran, by a clock that all clients share.
type span struct{ begun, ended int64 }

// history is what clients of one id did, and when.
type history struct {
	clock     atomic.Int64
	mu        sync.Mutex
	deletions []span
	appends   map[string]span // by what was said; those that were acknowledged
	unknown   map[string]bool // said in appends that failed
}

func (h *history) run(call func() error) (span, error) {
	s := span{begun: h.clock.Add(1)}
	err := call()
	s.ended = h.clock.Add(1)
	return s, err
}

// TestOneIDManyClients deletes, makes, forks, reads and appends to one id at once. Each
// append that was acknowledged is in the session, or in one that was deleted after it,
// and nothing is there twice.
func TestOneIDManyClients(t *testing.T) {
	const clients, rounds = 10, 24
	ctx := context.Background()
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		a.append(t, "parent", conversation()...)
		h := &history{appends: map[string]span{}, unknown: map[string]bool{}}
		allowed := func(what string, err error, codes ...codes.Code) {
			if err != nil && !slices.Contains(codes, status.Code(err)) {
				t.Errorf("%s: %v", what, err)
			}
		}
		say := func(what string) func() error {
			return func() error {
				_, err := a.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{user(what), user(what + "'")}})
				return err
			}
		}
		steps := []func(who string){
			func(who string) {
				when, err := h.run(say(who))
				allowed("append", err)
				h.mu.Lock()
				defer h.mu.Unlock()
				if err == nil {
					h.appends[who] = when
				} else {
					h.unknown[who] = true
				}
			},
			func(string) {
				when, err := h.run(func() error {
					_, err := a.DeleteSession(ctx, &contextdv1.DeleteSessionRequest{SessionId: "s"})
					return err
				})
				allowed("delete", err, codes.NotFound)
				if err == nil {
					h.mu.Lock()
					defer h.mu.Unlock()
					h.deletions = append(h.deletions, when)
				}
			},
			func(string) {
				_, err := a.CreateSession(ctx, &contextdv1.CreateSessionRequest{SessionId: "s"})
				allowed("create", err, codes.AlreadyExists)
			},
			func(string) {
				_, err := a.ForkSession(ctx, &contextdv1.ForkSessionRequest{SessionId: "parent", NewSessionId: "s"})
				allowed("fork", err, codes.AlreadyExists)
			},
			func(who string) {
				_, err := a.ForkSession(ctx, &contextdv1.ForkSessionRequest{SessionId: "s", NewSessionId: "of-" + who})
				// It may have become shorter since the head was asked for.
				allowed("fork of it", err, codes.NotFound, codes.InvalidArgument)
			},
			func(string) {
				got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s"})
				allowed("assemble", err, codes.NotFound)
				if err == nil && got.header.GetPrefixHash() != hashOf(got.messages) {
					t.Error("a context has another hash than its messages")
				}
			},
		}
		var all sync.WaitGroup
		for client := range clients {
			all.Go(func() {
				for round := range rounds {
					// Appends are half of all that is done.
					step := 0
					if n := client*7 + round*3; n%2 == 1 {
						step = n % len(steps)
					}
					steps[step](fmt.Sprintf("%d.%d", client, round))
				}
			})
		}
		all.Wait()
		h.check(t, a)
	})
}

func (h *history) check(t *testing.T, a *api) {
	if err := say("last")(t, a); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for i, e := range a.read(t, "s") {
		if e.GetSeq() != uint64(i+1) {
			t.Fatalf("event %d has seq %d", i+1, e.GetSeq())
		}
		if said := e.GetMessage().GetBlocks()[0].GetText().GetText(); e.GetMessage().GetRole() == contextdv1.Role_ROLE_USER {
			seen[said]++
		}
	}
	for said, n := range seen {
		if n > 1 {
			t.Errorf("%q is there %d times", said, n)
		}
	}
	for said, when := range h.appends {
		deleted, mustBe := false, false
		for _, d := range h.deletions {
			deleted = deleted || d.ended > when.begun // it may have been of this session
			mustBe = mustBe || d.begun > when.ended   // it was of this session, or it had gone before
		}
		switch there := seen[said] > 0; {
		case !there && !deleted:
			t.Errorf("%q was acknowledged and is nowhere, though nothing was deleted since", said)
		case there && mustBe:
			t.Errorf("%q is there, though its session was deleted after it", said)
		case there && seen[said+"'"] == 0:
			t.Errorf("of the batch of %q a half is there", said)
		}
	}
}

func say(what string) func(*testing.T, *api) error { return try("s", user(what)) }
