package pglog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/pglog"
)

// interruption does something before one of the statements that a call makes.
type interruption struct {
	left int // statements before that
	do   func()
}

type interrupted struct{}

func (*interruption) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	if i, ok := ctx.Value(interrupted{}).(*interruption); ok {
		if i.left--; i.left == 0 {
			i.do()
		}
	}
	return ctx
}

func (*interruption) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestSessionEndsBetweenStatements: whichever statement of a call the deletion by another process comes before, the
// call is done, with all of one session, or finds that the session is gone.
func TestSessionEndsBetweenStatements(t *testing.T) {
	needServer(t)
	dsn := server.Schema(t)
	s, other := open(t, dsn, pglog.Options{Tracer: &interruption{}}), open(t, dsn, pglog.Options{})
	defer closeStore(t, s)
	defer closeStore(t, other)
	const length = 10 // more than a page
	fill := func(s eventlog.Store, id, who string) {
		b := eventlog.Batch{}
		for i := range length {
			b.Events = append(b.Events, logtest.Message(fmt.Sprint(i), eventlog.RoleUser, eventlog.Text{Text: who}))
			b.Artifacts = append(b.Artifacts, eventlog.Artifact{Kind: "k", Seq: eventlog.Seq(i + 1), ID: "i", Value: []byte(who)})
		}
		c, err := s.Append(t.Context(), id, b)
		if err == nil {
			_, err = c.Wait(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	allOf := func(events []eventlog.Event, err error, want int) error {
		said := map[string]bool{}
		for _, e := range events {
			said[e.Body.(*eventlog.Message).Blocks[0].(eventlog.Text).Text] = true
		}
		if len(said) > 1 || err == nil && len(events) != want {
			t.Errorf("%d events of %v", len(events), said)
		}
		return err
	}
	added := func(ctx context.Context, id string, artifacts ...eventlog.Artifact) error {
		c, err := s.Append(ctx, id, eventlog.Batch{Events: []eventlog.Event{logtest.Say("new")}, Artifacts: artifacts})
		if err == nil {
			_, err = c.Wait(ctx)
		}
		return err
	}
	fresh := eventlog.Artifact{Kind: "k", Seq: 3, ID: "new", New: true}
	calls := map[string]func(ctx context.Context, id string) error{
		"read": func(ctx context.Context, id string) error {
			all, err := logtest.Collect(s.Read(ctx, id, 1, length))
			return allOf(all, err, length)
		},
		"read runs": func(ctx context.Context, id string) error {
			all, err := logtest.Collect(s.ReadRuns(ctx, id, eventlog.Ranges{{From: 2, To: 2}, {From: 4, To: length}}))
			return allOf(all, err, length-2)
		},
		"chain": func(ctx context.Context, id string) error {
			_, err := s.ChainHead(ctx, id, 3)
			return err
		},
		"fork": func(ctx context.Context, id string) error {
			_, err := s.Fork(ctx, eventlog.ForkRequest{ParentID: id, At: 3, NewID: id + "/fork"})
			return err
		},
		"append":               func(ctx context.Context, id string) error { return added(ctx, id) },
		"append with artifact": func(ctx context.Context, id string) error { return added(ctx, id, fresh) },
		"put":                  func(ctx context.Context, id string) error { return s.PutArtifacts(ctx, id, fresh) },
		"artifact": func(ctx context.Context, id string) error {
			_, err := s.Artifact(ctx, id, "k", 2, "i")
			return err
		},
		"artifacts": func(ctx context.Context, id string) error {
			all, err := logtest.Collect(s.Artifacts(ctx, id, eventlog.ArtifactQuery{Kind: "k"}))
			if err == nil && len(all) != length {
				t.Errorf("%d artifacts", len(all))
			}
			return err
		},
		"kinds": func(ctx context.Context, id string) error {
			all, err := s.ArtifactKinds(ctx, id)
			if err == nil && len(all) != 1 {
				t.Errorf("the kinds are %q", all)
			}
			return err
		},
		"verify": s.Verify,
		"wait": func(ctx context.Context, id string) error {
			_, err := s.WaitPast(ctx, id, 2)
			return err
		},
		"lease": func(ctx context.Context, id string) error {
			_, err := s.Lease(ctx, id, 0, "w", time.Hour)
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				uninterrupted := true
				for variant := range 8 {
					remembered, again, oneCall := variant&1 > 0, variant&2 > 0, variant&4 > 0
					id := fmt.Sprintf("%s/%d/%d", name, n, variant)
					filler := other
					if remembered {
						filler = s
					}
					fill(filler, id, "before")
					cut := &interruption{left: n, do: func() {
						if err := other.DeleteSession(t.Context(), id, 0, nil); err != nil {
							t.Error(err)
						}
						if again {
							fill(other, id, "after")
						}
					}}
					ctx := context.WithValue(t.Context(), interrupted{}, cut)
					if oneCall {
						ctx = eventlog.OneCall(ctx)
					}
					if err := call(ctx, id); err != nil && !errors.As(err, new(*eventlog.NotFoundError)) {
						t.Errorf("before statement %d, remembered: %v, made again: %v, one call: %v: %v", n, remembered, again, oneCall, err)
					}
					uninterrupted = uninterrupted && cut.left > 0
				}
				if uninterrupted {
					return
				}
			}
		})
	}
}
