package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/pglog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// interruption does something once, before the last of a number of statements that calls make.
type interruption struct {
	mu   sync.Mutex
	left int
	do   func()
}

func (i *interruption) after(statements int, do func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.left, i.do = statements, do
}

// done reports whether it was reached.
func (i *interruption) done() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.left <= 0
}

func (i *interruption) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.Contains(q.SQL, "pg_notify") { // made in the background
		return ctx
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.left--; i.left == 0 {
		i.do()
	}
	return ctx
}

func (*interruption) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestSetBackBetweenStatements: whichever statement of a call comes after the database is set back, what the call
// answers is of one log, with its chain, or it says that the log is another. Later calls show what is there then.
func TestSetBackBetweenStatements(t *testing.T) {
	store := rewindableDatabase(t)
	const length = 20 // several pages
	grow := func(t *testing.T, a *api, who string, n int) {
		t.Helper()
		for i := range n {
			e := user(fmt.Sprintf("%s %d", who, i))
			e.EventId = fmt.Sprint(who, i)
			a.append(t, "s", e)
		}
	}
	chains := map[string]string{} // by who and seq
	chain := func(t *testing.T, a *api, who string, head int) {
		t.Helper()
		for seq := range head {
			head, err := a.store.ChainHead(t.Context(), "s", eventlog.Seq(seq+1))
			if err != nil {
				t.Fatal(err)
			}
			chains[fmt.Sprintf("%s%d", who, seq+1)] = fmt.Sprintf("sha256:%x", head)
		}
	}
	var known *contextdv1.LogMark
	t.Run("prepare", func(t *testing.T) {
		a := serve(t, store.open(t))
		grow(t, a, "shared", 2)
		store.keep(t, "early")
		chain(t, a, "early", 2)
		grow(t, a, "other", length)
		store.keep(t, "other")
		chain(t, a, "other", length+2)
		store.putBack(t, "early")
		grow(t, a, "late", length)
		if _, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s"}); err != nil {
			t.Fatal(err)
		}
		store.keep(t, "late")
		chain(t, a, "late", length+2)
		s, err := a.GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: "s"})
		if err != nil {
			t.Fatal(err)
		}
		known = &contextdv1.LogMark{Incarnation: s.GetSession().GetIncarnation(), HeadSeq: 3, ChainHead: chains["late3"]}
	})
	// of returns whose texts are shown.
	of := func(texts []string) []string {
		var who []string
		for _, text := range texts {
			for _, name := range []string{"other", "late"} {
				if strings.Contains(text, name+" ") && !slices.Contains(who, name) {
					who = append(who, name)
				}
			}
		}
		return who
	}
	read := func(t *testing.T, a *api, req *contextdv1.ReadEventsRequest) ([]string, error) {
		req.SessionId = "s"
		stream, err := a.ReadEvents(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := received(stream.Recv)
		var texts []string
		for _, part := range parts {
			events := part.GetEvents()
			for _, e := range events {
				texts = append(texts, e.GetMessage().GetBlocks()[0].GetText().GetText())
			}
			last := events[len(events)-1].GetSeq()
			for _, who := range of(texts) {
				if want := chains[fmt.Sprint(who, last)]; part.GetChainHead() != want {
					t.Errorf("event %d of %s has the chain %s", last, who, part.GetChainHead())
				}
			}
		}
		return texts, err
	}
	shown := func(t *testing.T, a *api, req *contextdv1.AssembleContextRequest) ([]string, error) {
		req.SessionId = "s"
		c, err := a.assemble(t, req)
		var texts []string
		for _, m := range c.messages {
			texts = append(texts, string(m.GetJson()))
		}
		return texts, err
	}
	calls := map[string]func(t *testing.T, a *api) ([]string, error){
		"read": func(t *testing.T, a *api) ([]string, error) { return read(t, a, &contextdv1.ReadEventsRequest{}) },
		"known": func(t *testing.T, a *api) ([]string, error) {
			return read(t, a, &contextdv1.ReadEventsRequest{Known: known})
		},
		"assemble": func(t *testing.T, a *api) ([]string, error) {
			return shown(t, a, &contextdv1.AssembleContextRequest{})
		},
		"assemble known": func(t *testing.T, a *api) ([]string, error) {
			return shown(t, a, &contextdv1.AssembleContextRequest{Known: known})
		},
		"replay": func(t *testing.T, a *api) ([]string, error) {
			_, err := a.ReplayProjection(t.Context(), &contextdv1.ReplayProjectionRequest{SessionId: "s", ProjectionId: "p22-0001"})
			return nil, err
		},
		"explain": func(t *testing.T, a *api) ([]string, error) {
			_, err := a.ExplainCall(t.Context(), &contextdv1.ExplainCallRequest{SessionId: "s", Text: "late 3"})
			return nil, err
		},
		"compact": func(t *testing.T, a *api) ([]string, error) {
			_, err := a.compaction.CompactSession(t.Context(), &contextdv1.CompactSessionRequest{SessionId: "s", Strategy: "window"})
			return nil, err
		},
		"export": func(t *testing.T, a *api) ([]string, error) {
			stream, err := a.transcripts.ExportTranscript(t.Context(), &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: "claude"})
			if err != nil {
				t.Fatal(err)
			}
			parts, err := received(stream.Recv)
			var texts []string
			for _, part := range parts {
				texts = append(texts, string(part.GetData()))
			}
			return texts, err
		},
		"resolve": func(t *testing.T, a *api) ([]string, error) {
			_, err := a.ResolvePointer(t.Context(), &contextdv1.ResolvePointerRequest{SessionId: "s", Pointer: "ctx:9.0"})
			return nil, err
		},
	}
	for name, call := range calls {
		for _, state := range []string{"early", "other"} {
			t.Run(name+"/"+state, func(t *testing.T) {
				cut := &interruption{}
				a := serve(t, store.openWith(t, pglog.Options{Poll: time.Hour, Tracer: cut}))
				for n, ended := 1, false; !ended; n++ {
					store.putBack(t, "late")
					cut.after(n, func() { store.putBack(t, state) })
					texts, err := call(t, a)
					if who := of(texts); len(who) > 1 {
						t.Errorf("before statement %d: it shows %v: %q", n, who, texts)
					}
					switch c := status.Code(err); {
					case c == codes.OK || isLost(err) || c == codes.NotFound || c == codes.Aborted:
					default:
						t.Errorf("before statement %d: %v", n, err)
					}
					ended = !cut.done()
					cut.after(0, nil)
					store.putBack(t, state)
					if now, err := calls["assemble"](t, a); err != nil || slices.Contains(of(now), "late") {
						t.Errorf("before statement %d: later %v, %q", n, err, now)
					}
				}
			})
		}
	}
}
