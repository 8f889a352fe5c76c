package server_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/limit"
	"github.com/contextd/contextd/cmd/contextd/internal/server"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func (a *api) append(t *testing.T, id string, events ...*contextdv1.Event) *contextdv1.AppendEventsResponse {
	t.Helper()
	resp, err := a.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: id, Events: events})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestAppendFillsIn(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		named := user("hello world")
		named.EventId, named.Seq, named.Turn = "mine", 77, 88
		resp := a.append(t, "s", user("hello"), named)
		got := a.read(t, "s")
		if len(got) != 2 || got[0].GetEventId() != "id-1" || got[1].GetEventId() != "mine" {
			t.Fatalf("events are %v", got)
		}
		for i, e := range got {
			if e.GetSeq() != uint64(i+1) || e.GetTurn() != 0 {
				t.Errorf("event %d has seq %d and turn %d", i, e.GetSeq(), e.GetTurn())
			}
			if at := e.GetTime().AsTime(); at.Before(epoch) || at.After(epoch.Add(time.Hour)) {
				t.Errorf("event %d got the time %v, not the clock's", i, at)
			}
			r := resp.GetReceipts()[i]
			if r.GetEventId() != e.GetEventId() || r.GetSeq() != e.GetSeq() || r.GetDuplicate() || r.GetTokens() != uint32(i+1) {
				t.Errorf("receipt %d is %v", i, r)
			}
		}
		if resp.GetFirstSeq() != 1 || resp.GetLastSeq() != 2 || resp.GetBudget() != nil {
			t.Errorf("answer is %v", resp)
		}
	})
}

// TestAppendOfManyTokens: a count that is larger than its field is the largest there is.
func TestAppendOfManyTokens(t *testing.T) {
	a := serve(t, stores["memory"](t))
	picture := &contextdv1.Block{Kind: &contextdv1.Block_Media{Media: &contextdv1.Media{MimeType: "image/png", Data: []byte("png"), Tokens: 1 << 31}}}
	e := message(contextdv1.Role_ROLE_USER, picture, picture)
	if r := a.append(t, "s", e).GetReceipts()[0]; r.GetTokens() != math.MaxUint32 {
		t.Errorf("the receipt says %d tokens", r.GetTokens())
	}
	stream, err := a.ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if part, err := stream.Recv(); err != nil || part.GetTokens()[0] != math.MaxUint32 {
		t.Errorf("read: %v, %v", part.GetTokens(), err)
	}
}

func TestAppendAgain(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		one, two := user("one"), user("two")
		one.EventId, two.EventId = "1", "2"
		a.append(t, "s", one)
		mixed := a.append(t, "s", one, two)
		if !mixed.GetReceipts()[0].GetDuplicate() || mixed.GetReceipts()[1].GetDuplicate() || mixed.GetFirstSeq() != 2 || mixed.GetLastSeq() != 2 {
			t.Errorf("half new: %v", mixed)
		}
		again := a.append(t, "s", one, two)
		if again.GetFirstSeq() != 0 || again.GetLastSeq() != 0 || !again.GetReceipts()[1].GetDuplicate() || again.GetReceipts()[1].GetSeq() != 2 {
			t.Errorf("all known: %v", again)
		}
		// A lost answer: the head has moved, yet the repeated call succeeds.
		_, err := a.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{
			SessionId: "s", Events: []*contextdv1.Event{one}, ExpectedHead: proto.Uint64(0),
		})
		if err != nil {
			t.Errorf("repeated with its expected head: %v", err)
		}
		if n := len(a.read(t, "s")); n != 2 {
			t.Errorf("the log holds %d events", n)
		}
	})
}

func TestAppendReportsTheBudget(t *testing.T) {
	a := serve(t, stores["memory"](t))
	if got := a.append(t, "s", user("one")).GetBudget(); got != nil {
		t.Errorf("before the first assembly: %v", got)
	}
	budget := &contextdv1.Budget{MaxTokens: 1000, SafetyMargin: proto.Float64(0)}
	if _, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: budget}); err != nil {
		t.Fatal(err)
	}
	before := a.append(t, "s", user("two")).GetBudget()
	after := a.append(t, "s", user(strings.Repeat("word ", 500))).GetBudget()
	if before.GetTargetTokens() != 1000 || after.GetProjectedTokens() < before.GetProjectedTokens()+500 {
		t.Errorf("reports are %v, then %v", before, after)
	}
}

// recordingStore holds every record back until it is let go.
type recordingStore struct {
	eventlog.Store
	held, letGo chan struct{}
}

func (s recordingStore) PutArtifacts(ctx context.Context, id string, all ...eventlog.Artifact) error {
	s.held <- struct{}{}
	<-s.letGo
	return s.Store.PutArtifacts(ctx, id, all...)
}

// TestAppendsWaitForNoAssembly: what is durable is acknowledged while the session is
// assembled, without an estimate.
func TestAppendsWaitForNoAssembly(t *testing.T) {
	store := recordingStore{stores["memory"](t), make(chan struct{}), make(chan struct{}, 2)}
	a := serve(t, store)
	a.append(t, "s", user("one"))
	request := &contextdv1.AssembleContextRequest{SessionId: "s", Budget: &contextdv1.Budget{MaxTokens: 1000}}
	assembled := make(chan error, 1)
	assemble := func() {
		_, err := a.assemble(t, request)
		assembled <- err
	}
	go assemble()
	<-store.held
	store.letGo <- struct{}{}
	if err := <-assembled; err != nil {
		t.Fatal(err)
	}
	if got := a.append(t, "s", user("two")); got.GetBudget() == nil {
		t.Error("no estimate after an assembly")
	}
	go assemble()
	<-store.held
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // so that a failure does not hang
	defer cancel()
	got, err := a.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{user("three")}})
	if err != nil || got.GetLastSeq() != 3 || got.GetBudget() != nil {
		t.Errorf("while the session is assembled: %v, %v", got, err)
	}
	store.letGo <- struct{}{}
	if err := <-assembled; err != nil {
		t.Fatal(err)
	}
	if got := a.append(t, "s", user("four")); got.GetBudget() == nil {
		t.Error("no estimate once the assembly is over")
	}
}

func TestSessionsTokenizer(t *testing.T) {
	a := serve(t, stores["memory"](t))
	_, err := a.CreateSession(t.Context(), &contextdv1.CreateSessionRequest{
		SessionId: "s", Budget: &contextdv1.Budget{Tokenizer: "cl100k_base"},
	})
	if err != nil {
		t.Fatal(err)
	}
	// Two tokens in cl100k_base, one in o200k_base.
	const word = "конечно"
	count := func(tokenizer string) uint64 {
		resp, err := a.CountTokens(t.Context(), &contextdv1.CountTokensRequest{Text: word, Tokenizer: tokenizer})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetTokens()
	}
	if count("cl100k_base") == count("o200k_base") {
		t.Fatal("the word tells no difference")
	}
	if got := uint64(a.append(t, "s", user(word)).GetReceipts()[0].GetTokens()); got != count("cl100k_base") {
		t.Errorf("counted %d tokens; cl100k_base has %d", got, count("cl100k_base"))
	}
	if got := uint64(a.append(t, "new", user(word)).GetReceipts()[0].GetTokens()); got != count("o200k_base") {
		t.Errorf("counted %d tokens in a session without settings; o200k_base has %d", got, count("o200k_base"))
	}
	// A session that takes the name of a deleted one takes nothing else of it.
	if _, err := a.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: "s"}); err != nil {
		t.Fatal(err)
	}
	if got := uint64(a.append(t, "s", user(word)).GetReceipts()[0].GetTokens()); got != count("o200k_base") {
		t.Errorf("counted %d tokens after the session was made anew; o200k_base has %d", got, count("o200k_base"))
	}
}

// TestLargestEvent takes an event as large as the limit there and back.
func TestLargestEvent(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		large := strings.Repeat("0123456789abcde\n", 1<<20)
		a.append(t, "s", user("small"), user(large), user("small"))
		got := a.read(t, "s")
		if len(got) != 3 || got[1].GetMessage().GetBlocks()[0].GetText().GetText() != large {
			t.Fatalf("%d events came back, or not what was sent", len(got))
		}
	})
}

func TestFailingIDs(t *testing.T) {
	a := serve(t, stores["memory"](t), func(o *server.Options) {
		o.NewID = func() (string, error) { return "", errors.New("no entropy at /dev/random") }
	})
	_, err := a.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{user("x")}})
	if err == nil || strings.Contains(err.Error(), "entropy") {
		t.Errorf("got %v; want an error that keeps the cause to itself", err)
	}
}

// TestARepeatedAppendNeedsNoRoom: a client that lost the answer learns that its events are stored, although
// the log may grow no more.
func TestARepeatedAppendNeedsNoRoom(t *testing.T) {
	said := func(id, text string) *contextdv1.Event {
		e := user(text)
		e.EventId = id
		return e
	}
	tests := map[string]func(*limit.Limits){
		"events of a session": func(l *limit.Limits) { l.MaxSessionEvents = 2 },
		"bytes of a session":  func(l *limit.Limits) { l.MaxSessionBytes = 120 },
		"bytes of a tenant":   func(l *limit.Limits) { l.MaxTenantBytes = 120 },
		"bytes of all":        func(l *limit.Limits) { l.MaxStoreBytes = 120 },
	}
	for name, set := range tests {
		t.Run(name, func(t *testing.T) {
			a := serve(t, stores["memory"](t), func(o *server.Options) { set(&o.Limits) })
			first, second := said("1", strings.Repeat("x", 40)), said("2", strings.Repeat("y", 40))
			a.append(t, "s", first, second)
			receipts := a.append(t, "s", first, second).GetReceipts()
			for i, r := range receipts {
				if !r.GetDuplicate() || r.GetSeq() != uint64(i)+1 {
					t.Errorf("receipt %d: %v", i, r)
				}
			}
			if err := try("s", said("2", "other"))(t, a); status.Code(err) != codes.AlreadyExists {
				t.Errorf("an id with other content: %v", err)
			}
			full := badInput{code: codes.ResourceExhausted, reason: apierr.ReasonLimit, field: "session_id"}
			checkRefusal(t, try("s", second, said("3", strings.Repeat("z", 40)))(t, a), full)
			checkRefusal(t, try("t", said("1", strings.Repeat("x", 400)), said("2", "y"), said("3", "z"))(t, a), full)
			if got := len(a.read(t, "s")); got != 2 {
				t.Errorf("the log has %d events", got)
			}
		})
	}
}
